//! The path of a downlink, from an application to the queue of its device, and from there to the network that brought
//! the device, if one did.
//!
//! In v2 the encoder runs when a downlink is sent. Here it runs when a downlink is scheduled, so that its author learns
//! about errors at once.

mod device_queue;
mod outgoing;
mod queue;
mod receiver;

use std::sync::Arc;

use runtime::Priority;
use server::status::ErrorChain;
use server::usage::Usage;
use types::{AppId, Clock, DevId, Downlink, DownlinkEvent, Kind, Kinded};

use self::device_queue::Schedule;
pub use self::{
    outgoing::{Network, Networks, Outgoing},
    receiver::DownlinkReceiver,
};
use crate::{
    Error,
    application::{Applications, Conversion},
    device::Devices,
    metrics,
    output::{Event, Message, Output},
    payload::{PAYLOAD_BYTES_MAX, Payload, Payloads, Run},
    status::Traffic,
};

/// The port of a downlink that names none.
const PORT_DEFAULT: u8 = 1;
/// The highest port for applications.
const PORT_MAX: u8 = 223;

/// Brings downlinks from applications to the queues of their devices.
pub struct Downlinks {
    /// The applications, with their encoders.
    pub applications: Applications,
    /// The devices.
    pub devices: Devices,
    /// Encodes fields.
    pub payloads: Arc<Payloads>,
    /// Where events go.
    pub output: Arc<dyn Output>,
    /// Counts downlinks.
    pub traffic: Arc<Traffic>,
    /// Takes downlinks from the queues to networks.
    pub outgoing: Arc<Outgoing>,
    /// The time of a downlink.
    pub clock: Arc<dyn Clock>,
}

impl Downlinks {
    /// Schedules a downlink that was published, and publishes the outcome as an event.
    async fn handle(&self, app_id: &AppId, dev_id: &DevId, body: &[u8]) -> Result<(), Error> {
        let downlink: Downlink = serde_json::from_slice(body)
            .map_err(|error| Error::invalid("Downlink", error))
            .inspect_err(|error| self.publish_error(app_id, dev_id, None, error))?;
        // It came over MQTT, where no request is charged.
        let scheduled = self.schedule(app_id, dev_id, &downlink, &Usage::default()).await;
        if let Err(error) = &scheduled {
            self.publish_error(app_id, dev_id, Some(Downlink { schedule: None, ..downlink }), error);
        }
        scheduled.map(drop)
    }

    /// Puts a downlink into the queue of its device, and returns it as it will be sent: with its bytes and port. What
    /// its encoder costs is added to `usage`.
    pub(crate) async fn schedule(
        &self,
        app_id: &AppId,
        dev_id: &DevId,
        downlink: &Downlink,
        usage: &Usage,
    ) -> Result<Downlink, Error> {
        let schedule = Schedule::parse(downlink.schedule.as_deref().unwrap_or_default())?;
        check_port(downlink.port)?;
        self.devices.check_exists(app_id, dev_id).await?;
        let encoded = self.encode(app_id, downlink, usage).await?;
        self.outgoing.queues.put(app_id, dev_id, encoded.clone(), schedule).await?;
        metrics::downlink_scheduled();
        let now = self.clock.now();
        self.traffic.downlink.mark(now);
        let message = Some(Downlink { schedule: None, ..downlink.clone() });
        let event = DownlinkEvent { error: None, message, time: Some(now) };
        self.publish(app_id, dev_id, Event::DownlinkScheduled(event));
        self.outgoing.added(app_id, dev_id);
        Ok(encoded)
    }

    /// The queue of a device; [`Error::NotFound`] if the device does not exist.
    pub(crate) async fn list(&self, app_id: &AppId, dev_id: &DevId) -> Result<Vec<Downlink>, Error> {
        self.outgoing.queues.list(app_id, dev_id).await
    }

    /// Empties the queue of a device; [`Error::NotFound`] if the device does not exist. What its network has taken stays
    /// there, but is not sent again.
    pub(crate) async fn clear(&self, app_id: &AppId, dev_id: &DevId) -> Result<(), Error> {
        self.outgoing.queues.clear(app_id, dev_id).await
    }

    async fn encode(&self, app_id: &AppId, downlink: &Downlink, usage: &Usage) -> Result<Downlink, Error> {
        let fields = downlink.payload_fields.as_ref().map(|fields| fields.get()).filter(|fields| !is_empty(fields));
        let bytes = downlink.payload_raw.as_ref().filter(|bytes| !bytes.is_empty());
        let (payload, port) = match (bytes, fields) {
            (Some(_), Some(_)) => return Err(Error::invalid("Downlink", "Both Fields and Payload provided")),
            (None, None) => return Err(Error::invalid("Downlink Payload", "empty")),
            (Some(bytes), None) => (bytes.clone(), None),
            (None, Some(fields)) => self.encode_fields(app_id, fields, downlink.port, usage).await?,
        };
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Error::invalid("Payload", format_args!("at most {PAYLOAD_BYTES_MAX} bytes are allowed")));
        }
        if payload.is_empty() {
            return Err(Error::invalid("Downlink Payload", "the encoder returned no bytes"));
        }
        let port = Some(downlink.port).filter(|port| *port > 0).or(port).unwrap_or(PORT_DEFAULT);
        check_port(port)?;
        Ok(Downlink { port, confirmed: downlink.confirmed, payload_raw: Some(payload), ..Downlink::default() })
    }

    /// The output of the application's encoder, and the port that it chose.
    async fn encode_fields(
        &self,
        app_id: &AppId,
        fields: &str,
        port: u8,
        usage: &Usage,
    ) -> Result<(Vec<u8>, Option<u8>), Error> {
        let application = self.applications.get(app_id).await?;
        if application.summary().conversion() == Conversion::None {
            return Err(Error::invalid("Downlink Payload", "fields supplied, but the payload format converts none"));
        }
        let payload = Payload::without_device(None, port.into(), self.clock.now())?;
        let run = Run { priority: Priority::Live, usage };
        let encoded = self.payloads.encode(&application, fields, &payload, run).await?;
        Ok((encoded.payload, encoded.port))
    }

    /// Tells the application why its downlink was not scheduled. Internal errors are only logged in full.
    fn publish_error(&self, app_id: &AppId, dev_id: &DevId, message: Option<Downlink>, error: &Error) {
        metrics::downlink_dropped(error.kind());
        let text = match error.kind() {
            Kind::Internal => {
                tracing::error!(%app_id, error = %ErrorChain(&error), "a downlink failed with an internal error");
                "internal error".to_owned()
            }
            _ => error.to_string(),
        };
        let event = DownlinkEvent { error: Some(text), message, time: Some(self.clock.now()) };
        self.publish(app_id, dev_id, Event::DownlinkError(event));
    }

    fn publish(&self, app_id: &AppId, dev_id: &DevId, event: Event) {
        // What was promised is that the downlink is in the queue.
        self.output.publish(Message { app_id: app_id.clone(), dev_id: dev_id.clone(), event }).forget();
    }
}

fn check_port(port: u8) -> Result<(), Error> {
    let is_valid = port <= PORT_MAX;
    is_valid.then_some(()).ok_or_else(|| Error::invalid("Downlink Port", format_args!("1 to {PORT_MAX} are allowed")))
}

/// Whether this is the text of an empty object.
fn is_empty(fields: &str) -> bool {
    serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(fields).is_ok_and(|fields| fields.is_empty())
}
