//! The first application of a user: created with functions and a device, over the same APIs as any other. Each step
//! looks at what is there, so that a form that is sent again goes on where it ended and creates nothing twice.

use std::time::Duration;

use api::{
    handler::{Application, SimulatedUplinkMessage},
    history::Query,
    rest::account::NewApplication,
};
use client::{handler::HandlerClient, random_eui, random_key};
use device_file::new_device;
use server::ledger::Owner;
use tokio::time::{Instant, sleep};
use types::{AppId, AppKey, Kind, Kinded};

use super::Access;
use crate::{
    Console, Error, Result,
    form::first_application::{FirstApplication, Sample},
    session::Session,
};

/// The name of the application for people.
const NAME: &str = "First application";
/// Maximum time to wait for a handler that starts.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two looks at whether the handler has started.
const START_INTERVAL: Duration = Duration::from_millis(200);

impl Console {
    /// Creates the application, and sends an uplink as if its device had sent it.
    ///
    /// Fails if the id is taken, or if the user has an application with this id and other functions.
    pub(crate) async fn create_first_application(&self, session: &Session, first: &FirstApplication) -> Result<()> {
        self.handler_started().await?;
        // The same form at the same time would not see what this one is about to create.
        let _turn = self.first_applications.take(&Owner::from(&session.user_id)).await;
        let access = self.access_to_first(session, &first.app_id).await?;
        let handler = match self.handler(&access).await? {
            Some(handler) => handler,
            None => self.register(&access).await?,
        };
        set_functions(&handler, &first.app_id, &first.sample).await?;
        let is_new = self.add_device(&handler, &access, first).await?;
        if is_new || !has_uplinks(&handler, first).await? {
            let Sample { payload, port, .. } = first.sample;
            let (app_id, dev_id) = (first.app_id.to_string(), first.dev_id.to_string());
            handler.simulate_uplink(SimulatedUplinkMessage { app_id, dev_id, payload: payload.to_vec(), port }).await?;
        }
        Ok(())
    }

    /// Waits for this network's handler: it compiles the sandbox when it first starts, and whoever has just created the
    /// first account may be here before.
    async fn handler_started(&self) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match self.own_handler().await {
                Err(Error::Starting | Error::HandlerStarting(_)) if Instant::now() < deadline => {
                    sleep(START_INTERVAL).await;
                }
                result => return result.map(drop),
            }
        }
    }

    /// Access to the new application, or to that which the user has with this id.
    async fn access_to_first(&self, session: &Session, app_id: &AppId) -> Result<Access> {
        let new =
            NewApplication { id: app_id.clone(), name: NAME.to_owned(), euis: Vec::new(), access_keys: Vec::new() };
        match self.account.create_application(&session.credential(), &new).await {
            Ok(_) => self.access(session, app_id.clone()).await,
            Err(error) if error.kind() == Kind::AlreadyExists => {
                self.access(session, app_id.clone()).await.map_err(|error| match error {
                    Error::NotFound(_) => Error::ApplicationTaken(app_id.clone()),
                    error => error,
                })
            }
            Err(error) => Err(Error::of_account(error)),
        }
    }

    /// Registers the device with random keys, unless it exists; returns true if it is new.
    async fn add_device(&self, handler: &HandlerClient, access: &Access, first: &FirstApplication) -> Result<bool> {
        match handler.get_device(&first.app_id, &first.dev_id).await {
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == Kind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let application = self.account.application(&access.credential, &first.app_id).await;
        let app_eui = application.map_err(Error::of_account)?.euis.first().copied().unwrap_or_default();
        let random = self.random.as_ref();
        let mut device = new_device(first.app_id.clone(), first.dev_id.clone(), app_eui, random_eui(random));
        if let Some(lorawan) = &mut device.lorawan_device {
            lorawan.app_key = Some(AppKey::new(random_key(random)));
        }
        handler.set_device(device.into()).await?;
        Ok(true)
    }
}

/// Sets the functions of an application that has none.
async fn set_functions(handler: &HandlerClient, app_id: &AppId, sample: &Sample) -> Result<()> {
    let live = handler.get_application(app_id).await?;
    let others = [&live.converter, &live.validator, &live.encoder];
    let is_only = |decoder: &str| live.decoder == decoder && others.iter().all(|source| source.is_empty());
    if is_only(sample.decoder) && live.payload_format == sample.payload_format {
        return Ok(());
    }
    if !is_only("") || !["", "custom"].contains(&live.payload_format.as_str()) {
        return Err(Error::ApplicationInUse(app_id.clone()));
    }
    let (payload_format, decoder) = (sample.payload_format.to_owned(), sample.decoder.to_owned());
    Ok(handler.set_application(Application { payload_format, decoder, ..live }).await?)
}

async fn has_uplinks(handler: &HandlerClient, first: &FirstApplication) -> Result<bool> {
    let (app_id, dev_id) = (first.app_id.to_string(), first.dev_id.to_string());
    let query = Query { app_id, dev_id, kind: "up".to_owned(), limit: 1, ..Query::default() };
    Ok(!handler.list_records(query).await?.records.is_empty())
}
