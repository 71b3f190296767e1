//! Applications as the handler knows them: how their payloads are to be understood.

use std::sync::Arc;

use runtime::Dialect;
use serde::{Deserialize, Serialize};
use store::{Batch, Commit, Entry, Key, Store, Tag};
use types::{AccessKey, AppId};

use crate::Error;

/// The most bytes of a payload format.
const FORMAT_BYTES_MAX: usize = 64;
/// How many keys one step of a deletion takes.
const DELETE_STEP: usize = 256;

/// What the handler keeps about an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// Its id.
    pub app_id: AppId,
    /// How payloads are converted, as it was given; see [`Application::conversion`].
    pub payload_format: String,
    /// The text of its payload functions.
    pub functions: Functions,
    /// With what devices are registered when they join; its rights are the account service's business.
    pub register_on_join_access_key: Option<AccessKey>,
}

/// The text of the four payload functions; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Functions {
    /// Bytes to fields.
    pub decoder: String,
    /// Fields to fields.
    pub converter: String,
    /// Fields to yes or no.
    pub validator: String,
    /// Fields to bytes.
    pub encoder: String,
}

/// What happens to a payload on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The application's own functions, of the dialect that it chose if it did.
    Custom(Option<Dialect>),
    /// Cayenne Low Power Payload.
    CayenneLpp,
    /// It is passed on as it is.
    None,
}

impl Application {
    /// An application that was registered and not set up yet.
    pub fn new(app_id: AppId) -> Self {
        Self {
            app_id,
            payload_format: String::new(),
            functions: Functions::default(),
            register_on_join_access_key: None,
        }
    }

    /// What its payload format asks for; a format that we do not know converts nothing.
    pub fn conversion(&self) -> Conversion {
        match self.payload_format.as_str() {
            "custom" => Conversion::Custom(None),
            "cayennelpp" => Conversion::CayenneLpp,
            name => Dialect::from_name(name).map_or(Conversion::None, |dialect| Conversion::Custom(Some(dialect))),
        }
    }
}

impl Functions {
    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The applications that are registered here.
#[derive(Clone)]
pub struct Applications {
    store: Arc<dyn Store>,
}

impl Applications {
    /// The applications in `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Registers an application; [`Error::AlreadyExists`] when it is registered.
    pub async fn register(&self, app_id: &AppId) -> Result<(), Error> {
        let key = record_key(app_id)?;
        let value = serde_json::to_vec(&Application::new(app_id.clone()))?;
        match self.store.commit(Batch::new().expect_absent(key.clone()).put(key, value)).await? {
            Commit::Done => Ok(()),
            Commit::Conflict => Err(Error::already_exists("Application", app_id)),
        }
    }

    /// Looks up an application; [`Error::NotFound`] when it is not registered.
    pub async fn get(&self, app_id: &AppId) -> Result<Application, Error> {
        let entry = self.entry(app_id).await?;
        Ok(serde_json::from_slice(&entry.value)?)
    }

    /// Replaces the settings of a registered application.
    pub async fn set(&self, mut application: Application) -> Result<(), Error> {
        if application.payload_format.len() > FORMAT_BYTES_MAX {
            return Err(Error::invalid("PayloadFormat", format_args!("at most {FORMAT_BYTES_MAX} bytes are allowed")));
        }
        if application.payload_format.is_empty() && !application.functions.is_empty() {
            application.payload_format = "custom".to_owned();
        }
        let entry = self.entry(&application.app_id).await?;
        let value = serde_json::to_vec(&application)?;
        let batch = Batch::new().expect(entry.key.clone(), entry.version).put(entry.key, value);
        match self.store.commit(batch).await? {
            Commit::Done => Ok(()),
            Commit::Conflict => Err(Error::Conflict { what: format!("application {}", application.app_id) }),
        }
    }

    /// Removes an application with everything it owns.
    ///
    /// The record goes last, so that a deletion that was interrupted can be repeated.
    pub async fn delete(&self, app_id: &AppId) -> Result<(), Error> {
        let record = self.entry(app_id).await?.key;
        let everything = Key::new(&Tag::application(app_id.as_str())?, PREFIX)?;
        loop {
            let page = self.store.list(&everything, None, DELETE_STEP).await?;
            let owned: Vec<Key> = page.into_iter().map(|entry| entry.key).filter(|key| *key != record).collect();
            if owned.is_empty() {
                break;
            }
            let batch = owned.into_iter().fold(Batch::new(), Batch::delete);
            let _retried_if_conflicting = self.store.commit(batch).await?;
        }
        match self.store.commit(Batch::new().delete(record)).await? {
            Commit::Done => Ok(()),
            Commit::Conflict => Err(Error::Conflict { what: format!("application {app_id}") }),
        }
    }

    async fn entry(&self, app_id: &AppId) -> Result<Entry, Error> {
        entry(self.store.as_ref(), app_id).await
    }
}

/// The record of a registered application; [`Error::NotFound`] when it is not registered.
pub(crate) async fn entry(store: &dyn Store, app_id: &AppId) -> Result<Entry, Error> {
    let found = store.get(&[record_key(app_id)?]).await?;
    found.into_iter().next().flatten().ok_or_else(|| Error::not_found("Application", app_id))
}

/// Where everything lies that the handler keeps for an application.
pub(crate) const PREFIX: &str = "handler/";

/// Where an application's record lies.
pub(crate) fn record_key(app_id: &AppId) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("{PREFIX}application"))?)
}
