//! All operations of the handler. gRPC and REST are two ways to call them.
//!
//! Every operation first checks the caller's rights. Only device addresses are open to everybody.

pub(crate) mod attributes;
pub(crate) mod batch;
mod candidates;
mod deletions;
pub(crate) mod find;
mod history;
mod moves;
mod network_devices;
mod silence;
mod uncancellable;
mod versions;
pub(crate) mod webhooks;

use std::sync::Arc;

use ::history::{History, RecordId};
use api::handler::Status;
use outputs::Webhooks;
use runtime::Priority;
use server::audit::AuditLog;
use server::auth::{Caller, Purpose};
use server::ledger::OwnerTurn;
use types::{
    AppId, ApplicationRight, Claims, Clock, Credential, DevId, DevicePath, Downlink, Grant, Secret, Timestamp,
};

use self::uncancellable::uncancellable;
use crate::{
    Error, OneAtATime,
    access::Access,
    downlink::{Downlinks, Origin, Scheduled},
    network::{
        join::{Activated, ActivationRequest, JoinRequest, Joins},
        network_broker::NetworkBrokers,
    },
    output::{Event, Message, Output},
    payload::{Decoded, Encoded, Payload, Payloads, Run},
    registry::{
        announcement::Announcer,
        application::{Application, Applications, Conversion, JoinKeyChange, SentApplication},
        device::{Addresses, DEVICE_PAGE_MAX, Device, DevicePage, Devices},
    },
    status::Component,
    uplink::{Frame, Handled, Reader, Uplinks},
};

/// The handler's operations.
pub struct Operations {
    /// Decides who may do what.
    pub access: Access,
    /// Registered applications, with their functions.
    pub applications: Applications,
    /// Registered devices, with their sessions and counters.
    pub devices: Devices,
    /// Checks payload functions before they are stored, and dry-runs them.
    pub payloads: Arc<Payloads>,
    /// Handles simulated uplinks.
    pub uplinks: Arc<Uplinks>,
    /// Queues downlinks.
    pub downlinks: Arc<Downlinks>,
    /// Handles join requests.
    pub joins: Joins,
    /// The network brokers that may send join requests.
    pub network_brokers: Arc<NetworkBrokers>,
    /// Announces applications to the discovery service; none if the handler runs without one.
    pub announcer: Option<Arc<Announcer>>,
    /// Chooses device addresses.
    pub addresses: Addresses,
    /// The status of the handler.
    pub component: Component,
    /// Receives events.
    pub output: Arc<dyn Output>,
    /// History of messages.
    pub history: Arc<History>,
    /// The applications whose messages are being corrected.
    pub corrections: OneAtATime,
    /// The applications whose messages are being sent again.
    pub replays: OneAtATime,
    /// The webhooks that are being tested.
    pub webhook_tests: OneAtATime,
    /// The webhooks of applications.
    pub webhooks: Arc<Webhooks>,
    /// Records exports, and changes of settings and webhooks.
    pub audit: AuditLog,
    /// The time of a call.
    pub clock: Arc<dyn Clock>,
}

impl Operations {
    pub(crate) async fn register_application(&self, caller: Caller, app_id: &AppId) -> Result<(), Error> {
        let claims = self.access.allow(caller.clone(), app_id, &[ApplicationRight::Settings], Purpose::Change).await?;
        let change = self.audit.change("application registered", &actor(&claims), app_id)?;
        let registered = change.run(self.register(app_id)).await;
        // An application that is already registered is announced again, because the first time may have failed.
        if let (Ok(()) | Err(Error::AlreadyExists { .. }), Some(announcer), Some(credential)) =
            (&registered, &self.announcer, &caller.credential)
        {
            announcer.add_application(credential, app_id).await;
            if let Ok(Some(token)) = self.token_for_network_brokers(Some(credential.clone()), app_id).await {
                self.network_brokers.register_application(&token, app_id).await;
            }
        }
        registered
    }

    /// Gets an application.
    ///
    /// The access key for registering on join is shown only to callers that may see devices.
    pub(crate) async fn get_application(&self, caller: Caller, app_id: &AppId) -> Result<Application, Error> {
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Read).await?;
        let application = self.applications.get(app_id).await?;
        let may_see_key = claims.allows(app_id, ApplicationRight::Devices);
        Ok(if may_see_key { application } else { application.with_join_key(None) })
    }

    /// Replaces an application's settings. Functions that cannot be loaded change nothing; others become a new version.
    pub(crate) async fn set_application(&self, caller: Caller, application: SentApplication) -> Result<(), Error> {
        let (app_id, usage) = (&application.app_id.clone(), caller.usage.clone());
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Change).await?;
        self.applications.check_registered(app_id).await?;
        let application = application.into_application();
        let origin = self.check_functions(&application, &usage).await?;
        let may_see_key = claims.allows(app_id, ApplicationRight::Devices);
        let join_key = if may_see_key { JoinKeyChange::Replace } else { JoinKeyChange::Keep };
        self.set_functions(&claims, application, join_key, origin).await.map(drop)
    }

    pub(crate) async fn delete_application(&self, caller: Caller, app_id: &AppId) -> Result<(), Error> {
        let claims = self.access.allow(caller.clone(), app_id, &[ApplicationRight::Delete], Purpose::Change).await?;
        let change = self.audit.change("application unregistered", &actor(&claims), app_id)?;
        self.delete_network_devices(caller.credential.clone(), app_id).await?;
        let deleted = change.run(self.applications.delete(app_id)).await;
        if matches!(deleted, Ok(()) | Err(Error::NotFound { .. })) {
            self.withdraw(caller.credential, app_id).await;
        }
        deleted
    }

    pub(crate) async fn get_device(&self, caller: Caller, path: DevicePath<'_>) -> Result<Device, Error> {
        self.access.allow(caller, path.app_id, &[ApplicationRight::Devices], Purpose::Read).await?;
        self.devices.get(path).await
    }

    pub(crate) async fn set_device(self: &Arc<Self>, caller: Caller, device: Device) -> Result<(), Error> {
        let (this, credential) = (self.clone(), caller.credential.clone());
        self.access.allow(caller, &device.app_id, &[ApplicationRight::Devices], Purpose::Change).await?;
        let permit = self.permit(credential, &device.app_id).await?;
        uncancellable(async move {
            let change = this.change_device(permit, &device).await?;
            this.uplinks.last_heard.note_changed(device.path());
            let event = change.event(&device, this.clock.now());
            this.publish(device.app_id, device.dev_id, event);
            Ok(())
        })
        .await
    }

    pub(crate) async fn delete_device(
        self: &Arc<Self>,
        caller: Caller,
        app_id: AppId,
        dev_id: DevId,
    ) -> Result<(), Error> {
        let (this, credential) = (self.clone(), caller.credential.clone());
        self.access.allow(caller, &app_id, &[ApplicationRight::Devices], Purpose::Change).await?;
        self.applications.check_registered(&app_id).await?;
        let permit = self.permit(credential, &app_id).await?;
        uncancellable(async move { this.remove_device(permit, DevicePath { app_id: &app_id, dev_id: &dev_id }).await })
            .await
    }

    /// The token with which network brokers are called in the caller's name; none if there are no network brokers.
    async fn token_for_network_brokers(
        &self,
        credential: Option<Credential>,
        app_id: &AppId,
    ) -> Result<Option<Secret>, Error> {
        match credential.filter(|_| !self.network_brokers.is_empty()) {
            Some(credential) => self.access.token(app_id, &credential).await.map(Some),
            None => Ok(None),
        }
    }

    fn publish(&self, app_id: AppId, dev_id: DevId, event: Event) {
        // The change is made, and whoever asked for it is told so.
        self.output.publish(Message { app_id, dev_id, event }).forget();
    }

    /// Lists devices by id. A `limit` of zero means as many as one page may have. Keep the turn until the response has
    /// been made.
    pub(crate) async fn list_devices(
        &self,
        caller: Caller,
        app_id: &AppId,
        offset: usize,
        limit: usize,
    ) -> Result<(DevicePage, Option<OwnerTurn>), Error> {
        let usage = caller.usage.clone();
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::Devices], Purpose::Read).await?;
        self.applications.check_registered(app_id).await?;
        if offset == 0 {
            // Whoever lists devices gets their keys. Each list begins here.
            self.audit.note("devices exported", &actor(&claims), app_id);
        }
        let limit = if limit == 0 { DEVICE_PAGE_MAX } else { limit };
        let turn = usage.turn_for_list().await;
        Ok((self.devices.list(app_id, offset, limit, &usage).await?, turn))
    }

    /// Handles an uplink as if the device had sent it, and returns what it cost; and what the functions made of it, if
    /// the caller may read them. While the account service cannot be asked, uplinks go on for longer than reading.
    pub(crate) async fn simulate_uplink(&self, caller: Caller, uplink: SimulatedUplink) -> Result<Handled, Error> {
        let usage = caller.usage.clone();
        if let (_, Some(too_many)) = self.access.allow_uplinks(caller.clone(), &uplink.app_id, 1).await? {
            return Err(too_many.into());
        }
        let may_read = self.access.may_read(caller, &uplink.app_id, ApplicationRight::Settings).await;
        let reader = if may_read { Reader::Caller } else { Reader::Nobody };
        let now = self.clock.now();
        let frame = uplink.into_frame(now)?;
        self.component.traffic.uplink.mark(now);
        self.uplinks.handle_for(frame, &usage, reader).await
    }

    /// Puts a downlink into the queue of its device, and returns it as it will be sent.
    pub(crate) async fn schedule_downlink(
        &self,
        caller: Caller,
        path: DevicePath<'_>,
        downlink: &Downlink,
    ) -> Result<Scheduled, Error> {
        let usage = caller.usage.clone();
        self.access.allow(caller, path.app_id, &[ApplicationRight::MessagesDownWrite], Purpose::Change).await?;
        self.applications.check_registered(path.app_id).await?;
        let origin = Origin { is_late: false, usage: &usage, kept: &mut || () };
        self.downlinks.schedule(path, downlink, origin).await
    }

    /// Lists the queue of a device.
    pub(crate) async fn list_downlinks(&self, caller: Caller, path: DevicePath<'_>) -> Result<Vec<Downlink>, Error> {
        let rights = [ApplicationRight::Devices, ApplicationRight::MessagesDownWrite];
        self.access.allow(caller, path.app_id, &rights, Purpose::Read).await?;
        self.downlinks.list(path).await
    }

    /// Empties the queue of a device.
    pub(crate) async fn clear_downlinks(&self, caller: Caller, path: DevicePath<'_>) -> Result<(), Error> {
        self.access.allow(caller, path.app_id, &[ApplicationRight::MessagesDownWrite], Purpose::Change).await?;
        self.downlinks.clear(path).await
    }

    /// Decodes a payload with the functions in the request, and returns it with the result. Stores and publishes nothing.
    ///
    /// If a function fails, the error has the excerpt and the logs.
    pub(crate) async fn dry_uplink(
        &self,
        caller: Caller,
        application: SentApplication,
        input: UplinkInput,
    ) -> Result<(Vec<u8>, Decoded), Error> {
        let usage = caller.usage.clone();
        let application = self.prepare(caller.clone(), application).await?;
        let payload = match input {
            UplinkInput::Sent { payload, port } => Payload::without_device(Some(payload), port, self.clock.now())?,
            UplinkInput::Record(id) => self.recorded_payload(caller, &application.summary().app_id, id).await?,
        };
        let run = Run { priority: Priority::DryRun, usage: &usage };
        let mut decoded = self.payloads.decode(&application, &payload, run).await?;
        match decoded.error.take() {
            None => Ok((payload.bytes.unwrap_or_default(), decoded)),
            Some(error) => Err(error.into_error(&application, decoded.logs, decoded.cost)),
        }
    }

    /// Encodes fields with the encoder in the request. Stores and sends nothing.
    ///
    /// A downlink that already has bytes is returned as it is.
    pub(crate) async fn dry_downlink(
        &self,
        caller: Caller,
        application: SentApplication,
        port: u32,
        input: DownlinkInput,
    ) -> Result<Encoded, Error> {
        let usage = caller.usage.clone();
        let application = self.prepare(caller, application).await?;
        let payload = Payload::without_device(None, port, self.clock.now())?;
        match (input.payload.is_empty(), input.fields.is_empty()) {
            (true, false) => {
                let run = Run { priority: Priority::DryRun, usage: &usage };
                self.payloads.encode(&application, &input.fields, &payload, run).await
            }
            (false, true) => Ok(Encoded { payload: input.payload, ..Encoded::default() }),
            (false, false) => Err(Error::invalid("Downlink", "Both Fields and Payload provided")),
            (true, true) => Err(Error::invalid("Downlink", "Neither Fields nor Payload provided")),
        }
    }

    /// Signs a join request with the key of its device, which shows a network broker whether this handler knows the
    /// device.
    pub(crate) async fn challenge(
        &self,
        caller: Caller,
        path: DevicePath<'_>,
        request: &JoinRequest,
    ) -> Result<Vec<u8>, Error> {
        self.network_brokers.allow(&self.access, caller).await?;
        self.joins.challenge(path, request).await
    }

    pub(crate) async fn activate(
        self: &Arc<Self>,
        caller: Caller,
        request: ActivationRequest,
    ) -> Result<Activated, Error> {
        self.network_brokers.allow(&self.access, caller).await?;
        let this = self.clone();
        let activated = uncancellable(async move { this.joins.handle(request).await }).await?;
        self.component.traffic.activations.mark(self.clock.now());
        Ok(activated)
    }

    pub(crate) async fn status(&self, caller: Caller) -> Result<Status, Error> {
        self.access.allow_component(caller, &self.component.id).await?;
        Ok(self.component.status(self.clock.now()))
    }

    /// Prepares a dry run, for callers that may set the application's functions or see its devices.
    async fn prepare(&self, caller: Caller, application: SentApplication) -> Result<Application, Error> {
        let rights = [ApplicationRight::Settings, ApplicationRight::Devices];
        self.access.allow(caller, &application.app_id, &rights, Purpose::Read).await?;
        let application = application.into_application().custom_by_default();
        if application.summary().conversion() == Conversion::None {
            return Err(Error::invalid(
                "App",
                "unknown payload format; custom, cayennelpp, ts013, v2 and chirpstack3 are known",
            ));
        }
        Ok(application)
    }
}

/// Returns the caller that makes a change, for the audit log.
fn actor(claims: &Claims) -> String {
    match Grant::of(claims) {
        Some(Grant::Key { id }) => format!("{} {} key {id}", claims.kind, claims.sub),
        _ => format!("{} {}", claims.kind, claims.sub),
    }
}

/// An uplink to decode.
#[derive(Clone, Debug)]
pub(crate) enum UplinkInput {
    Sent {
        payload: Vec<u8>,
        port: u32,
    },
    /// A stored one, with its time, its seed and its further input.
    Record(RecordId),
}

/// A downlink to encode: either fields or bytes.
#[derive(Clone, Debug)]
pub(crate) struct DownlinkInput {
    /// A JSON object as text; empty for none.
    pub(crate) fields: String,
    pub(crate) payload: Vec<u8>,
}

/// An uplink that no device sent.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedUplink {
    pub(crate) app_id: AppId,
    pub(crate) dev_id: DevId,
    pub(crate) port: u32,
    pub(crate) payload: Vec<u8>,
}

impl SimulatedUplink {
    fn into_frame(self, now: Timestamp) -> Result<Frame, Error> {
        let Self { app_id, dev_id, port, payload } = self;
        Frame::simulated(app_id, dev_id, port, payload, now)
    }
}
