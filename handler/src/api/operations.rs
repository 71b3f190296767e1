//! Everything that a client may ask of the handler; gRPC and REST are two ways to say it.
//!
//! Every operation first decides whether the caller may do it; only addresses are for everybody.

use std::sync::Arc;

use api::handler::Status;
use runtime::Urgency;
use types::{AppId, ApplicationRight, Clock, ComponentId, Credential, DevId};

use crate::{
    Error,
    access::Access,
    announcement::Announcer,
    application::{Application, Applications, Conversion, JoinKey},
    device::{Addresses, Device, Devices, LIST_MAX, Page},
    join::{Join, JoinRequest, Joined, Joins},
    output::{Event, Message},
    payload::{Cost, Decoded, Encoded, Payloads},
    status::Component,
    uplink::{Frame, Payload, Uplinks},
};

/// What a client shows to prove who it is.
pub type Caller = Option<Credential>;

/// The handler's operations and what they need.
pub struct Operations {
    /// Decides who may do what.
    pub access: Access,
    /// The registered applications.
    pub applications: Applications,
    /// Their devices.
    pub devices: Devices,
    /// Checks payload functions before they are kept.
    pub payloads: Arc<Payloads>,
    /// The way of simulated uplinks.
    pub uplinks: Uplinks,
    /// The way of devices that join.
    pub joins: Joins,
    /// The brokers that bring what devices send.
    pub brokers: Vec<ComponentId>,
    /// Tells the network which applications are here; none when the handler stands alone.
    pub announcer: Option<Arc<Announcer>>,
    /// Where devices get their addresses.
    pub addresses: Addresses,
    /// What the handler says about itself.
    pub component: Component,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

impl Operations {
    /// Registers an application and tells the network that it is here.
    pub async fn register_application(&self, caller: Caller, app_id: &AppId) -> Result<(), Error> {
        self.access.allow(caller.clone(), app_id, &[ApplicationRight::Settings]).await?;
        let registered = self.applications.register(app_id).await;
        // One that was registered before is announced again: the first time may have come to nothing.
        if let (Ok(()) | Err(Error::AlreadyExists { .. }), Some(announcer), Some(credential)) =
            (&registered, &self.announcer, &caller)
        {
            announcer.add_application(credential, app_id).await;
        }
        registered
    }

    /// Gives an application's settings.
    ///
    /// The key for registering on join is shown only to those who may see devices.
    pub async fn get_application(&self, caller: Caller, app_id: &AppId) -> Result<Application, Error> {
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::Settings]).await?;
        let mut application = self.applications.get(app_id).await?;
        if !claims.allows(app_id, ApplicationRight::Devices) {
            application.register_on_join_access_key = None;
        }
        Ok(application)
    }

    /// Replaces an application's settings; functions that cannot be used change nothing.
    pub async fn set_application(&self, caller: Caller, application: Application) -> Result<(), Error> {
        let claims = self.access.allow(caller, &application.app_id, &[ApplicationRight::Settings]).await?;
        self.applications.outline(&application.app_id).await?;
        self.payloads.check(&application).await?;
        let may_see_key = claims.allows(&application.app_id, ApplicationRight::Devices);
        self.applications.set(application, if may_see_key { JoinKey::Replaced } else { JoinKey::Kept }).await
    }

    /// Removes an application with its devices, here and from what the network knows.
    pub async fn delete_application(&self, caller: Caller, app_id: &AppId) -> Result<(), Error> {
        self.access.allow(caller.clone(), app_id, &[ApplicationRight::Delete]).await?;
        let deleted = self.applications.delete(app_id).await;
        if let (Ok(()) | Err(Error::NotFound { .. }), Some(announcer), Some(credential)) =
            (&deleted, &self.announcer, &caller)
        {
            announcer.remove_application(credential, app_id).await;
        }
        deleted
    }

    /// Gives a device.
    pub async fn get_device(&self, caller: Caller, app_id: &AppId, dev_id: &DevId) -> Result<Device, Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::Devices]).await?;
        self.devices.get(app_id, dev_id).await
    }

    /// Creates or replaces a device of a registered application.
    pub async fn set_device(&self, caller: Caller, device: Device) -> Result<(), Error> {
        self.access.allow(caller, &device.app_id, &[ApplicationRight::Devices]).await?;
        let change = self.devices.set(device.clone()).await?;
        let event = change.event(&device, self.clock.now());
        self.publish(device.app_id, device.dev_id, event);
        Ok(())
    }

    /// Removes a device.
    pub async fn delete_device(&self, caller: Caller, app_id: &AppId, dev_id: &DevId) -> Result<(), Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::Devices]).await?;
        self.applications.outline(app_id).await?;
        self.devices.delete(app_id, dev_id).await?;
        self.publish(app_id.clone(), dev_id.clone(), Event::Delete);
        Ok(())
    }

    fn publish(&self, app_id: AppId, dev_id: DevId, event: Event) {
        self.uplinks.output.publish(Message { app_id, dev_id, event });
    }

    /// Lists devices by id; `limit` zero asks for as many as an answer may hold.
    pub async fn list_devices(
        &self,
        caller: Caller,
        app_id: &AppId,
        offset: usize,
        limit: usize,
    ) -> Result<Page, Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::Devices]).await?;
        self.applications.outline(app_id).await?;
        let limit = if limit == 0 { LIST_MAX } else { limit };
        self.devices.list(app_id, offset, limit).await
    }

    /// Sends an uplink on its way as if the device had sent it, and says what it cost.
    pub async fn simulate_uplink(&self, caller: Caller, uplink: SimulatedUplink) -> Result<Cost, Error> {
        let rights = [ApplicationRight::Devices, ApplicationRight::MessagesUpWrite];
        self.access.allow(caller, &uplink.app_id, &rights).await?;
        let SimulatedUplink { app_id, dev_id, port, payload } = uplink;
        let now = self.clock.now();
        let frame = Frame::simulated(app_id, dev_id, port, payload, now)?;
        self.component.traffic.uplink.mark(now);
        self.uplinks.handle(frame).await
    }

    /// Shows what the functions that are given would make of a payload; keeps and publishes nothing.
    ///
    /// A function that fails is the error, with its excerpt and logs.
    pub async fn dry_uplink(&self, caller: Caller, run: DryRun<Vec<u8>>) -> Result<Decoded, Error> {
        let (application, payload) = self.prepare(caller, run.application, run.port, Some(run.input)).await?;
        let mut decoded = self.payloads.decode(&application, &payload, Urgency::Dry).await?;
        match decoded.problem.take() {
            None => Ok(decoded),
            Some(problem) => Err(problem.into_error(&application, decoded.logs, decoded.cost)),
        }
    }

    /// Shows what the encoder that is given would make of fields; keeps and sends nothing.
    ///
    /// A downlink whose bytes are given already stays as it is.
    pub async fn dry_downlink(&self, caller: Caller, run: DryRun<Downlink>) -> Result<Encoded, Error> {
        let (application, payload) = self.prepare(caller, run.application, run.port, None).await?;
        match (run.input.payload.is_empty(), run.input.fields.is_empty()) {
            (true, false) => self.payloads.encode(&application, &run.input.fields, &payload, Urgency::Dry).await,
            (false, true) => Ok(Encoded { payload: run.input.payload, ..Encoded::default() }),
            (false, false) => Err(Error::invalid("Downlink", "Both Fields and Payload provided")),
            (true, true) => Err(Error::invalid("Downlink", "Neither Fields nor Payload provided")),
        }
    }

    /// Signs a join request with the key of its device, so that a broker sees whether the device is one of ours.
    pub(crate) async fn challenge(
        &self,
        caller: Caller,
        app_id: &AppId,
        dev_id: &DevId,
        request: &JoinRequest,
    ) -> Result<Vec<u8>, Error> {
        self.access.allow_broker(caller, &self.brokers).await?;
        self.joins.challenge(app_id, dev_id, request).await
    }

    /// Begins a session for a device that joins.
    pub(crate) async fn activate(&self, caller: Caller, join: Join) -> Result<Joined, Error> {
        self.access.allow_broker(caller, &self.brokers).await?;
        let joined = self.joins.handle(join).await?;
        self.component.traffic.activations.mark(self.clock.now());
        Ok(joined)
    }

    /// The handler's figures, for those who look after it.
    pub async fn status(&self, caller: Caller) -> Result<Status, Error> {
        self.access.allow_component(caller, &self.component.id).await?;
        Ok(self.component.status(self.clock.now()))
    }

    /// Lets those try functions who could set them, or who work with the application's devices.
    async fn prepare(
        &self,
        caller: Caller,
        mut application: Application,
        port: u32,
        bytes: Option<Vec<u8>>,
    ) -> Result<(Application, Payload), Error> {
        let rights = [ApplicationRight::Settings, ApplicationRight::Devices];
        self.access.allow(caller, &application.app_id, &rights).await?;
        if application.payload_format.is_empty() {
            application.payload_format = "custom".to_owned();
        }
        if application.conversion() == Conversion::None {
            return Err(Error::invalid(
                "App",
                "unknown payload format; custom, cayennelpp, ts013, v2 and chirpstack3 are known",
            ));
        }
        Ok((application, Payload::dry(bytes, port, self.clock.now())?))
    }
}

/// Functions and what they are to be tried with.
#[derive(Clone, Debug)]
pub struct DryRun<T> {
    /// The functions; its id says to whom the caller must belong.
    pub application: Application,
    /// The LoRaWAN port, 0 to 255.
    pub port: u32,
    /// The bytes of an uplink, or a downlink.
    pub input: T,
}

/// What is to be sent to a device: either fields or bytes.
#[derive(Clone, Debug)]
pub struct Downlink {
    /// The text of a JSON object; empty for none.
    pub fields: String,
    /// Bytes; empty for none.
    pub payload: Vec<u8>,
}

/// An uplink that no device sent.
#[derive(Clone, Debug)]
pub struct SimulatedUplink {
    /// The application.
    pub app_id: AppId,
    /// The device, which must exist.
    pub dev_id: DevId,
    /// The LoRaWAN port, 0 to 255.
    pub port: u32,
    /// At most 255 bytes.
    pub payload: Vec<u8>,
}
