//! The path of a downlink, from an application to the queue of its device, and from there to the network that brought
//! the device, if one did.
//!
//! In v2 the encoder runs when a downlink is sent. Here it runs when a downlink is scheduled, so that its author learns
//! about errors at once.

mod device_queue;
mod outgoing;
mod queue;
mod receiver;
mod response;

use std::sync::Arc;

use mqtt::{Accepted, DownlinkRefusal, PublishedDownlink};
use runtime::Priority;
use server::status::ErrorChain;
use server::usage::Usage;
use types::{Clock, DevicePath, Downlink, DownlinkEvent, Kind, Kinded};

use self::device_queue::Schedule;
pub(crate) use self::response::{Response, SentFrame};
pub use self::{
    outgoing::{DownlinkNetwork, Networks, Outgoing},
    receiver::DownlinkReceiver,
};
use crate::{
    Error,
    output::{Event, Message, Output, PublishReceipt},
    payload::{Encoded, Payload, Payloads, Run},
    registry::{
        application::{Applications, Conversion},
        device::Devices,
    },
    status::{Traffic, metrics},
};

/// The port of a downlink that names none.
const PORT_DEFAULT: u8 = 1;
/// The highest port for applications.
const PORT_MAX: u8 = 223;
/// Maximum length of a payload, in bytes. No data rate carries more.
const PAYLOAD_BYTES_MAX: usize = 242;

/// A downlink that was put into the queue of its device.
pub(crate) struct Scheduled {
    /// It as it will be sent: with its bytes and port.
    pub(crate) downlink: Downlink,
    /// Warnings of its encoder.
    pub(crate) warnings: Vec<String>,
    /// The version of the functions whose encoder ran, if one did.
    version: Option<u32>,
}

/// Source of a downlink, and what its scheduling reports back.
pub(crate) struct Origin<'a> {
    /// True if it may have been published before others that already wait.
    pub(crate) is_late: bool,
    /// Receives the cost of its encoder.
    pub(crate) usage: &'a Usage,
    /// Called when it is in the queue, before anything is published about it.
    pub(crate) kept: &'a mut (dyn FnMut() + Send),
}

/// Brings downlinks from applications to the queues of their devices.
pub struct Downlinks {
    /// The applications, with their encoders.
    pub applications: Applications,
    /// The devices to which they go.
    pub devices: Devices,
    /// Encodes fields.
    pub payloads: Arc<Payloads>,
    /// Receives events.
    pub output: Arc<dyn Output>,
    /// Counts downlinks.
    pub traffic: Arc<Traffic>,
    /// Takes downlinks from the queues to networks.
    pub outgoing: Arc<Outgoing>,
    /// The time of a downlink.
    pub clock: Arc<dyn Clock>,
}

impl Downlinks {
    /// Schedules a downlink that was published, and publishes the outcome as an event, unless it comes again; before
    /// that, it is `accepted` unless it has to be sent again.
    async fn handle(&self, published: &PublishedDownlink, accepted: Accepted<'_>) -> Result<(), DownlinkRefusal> {
        let PublishedDownlink { app_id, dev_id, body, is_late, .. } = published;
        let path = DevicePath { app_id, dev_id };
        let mut accepted = Some(accepted);
        let mut accept = || accepted.take().into_iter().for_each(|accepted| accepted());
        let (result, message) = match parse(body) {
            Ok(downlink) => {
                // It came over MQTT, where no request is charged.
                let origin = Origin { is_late: *is_late, usage: &Usage::default(), kept: &mut accept };
                let scheduled = self.schedule(path, &downlink, origin).await;
                (scheduled.map(drop), Some(Downlink { schedule: None, ..downlink }))
            }
            Err(error) => (Err(error), None),
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => Err(self.refuse(published, message, &error, &mut accept).await),
        }
    }

    /// Refuses a downlink that could not be scheduled, and tells its application, unless it comes again. Before that, it
    /// is accepted unless it has to be sent again.
    async fn refuse(
        &self,
        PublishedDownlink { app_id, dev_id, offer, .. }: &PublishedDownlink,
        message: Option<Downlink>,
        error: &Error,
        accept: &mut (dyn FnMut() + Send),
    ) -> DownlinkRefusal {
        let (path, refused) = (DevicePath { app_id, dev_id }, refusal(error));
        if refused.comes_again(*offer) {
            return refused;
        }
        if refused.may_succeed_later() {
            self.publish_error(path, message, error).forget();
            return refused;
        }
        accept();
        // Nobody else will tell the application.
        let published = self.publish_error(path, message, error).wait().await;
        published.err().map(|error| refusal(&error)).filter(|refusal| refusal.may_succeed_later()).unwrap_or(refused)
    }

    /// Puts a downlink into the queue of its device.
    pub(crate) async fn schedule(
        &self,
        path: DevicePath<'_>,
        downlink: &Downlink,
        Origin { is_late, usage, kept }: Origin<'_>,
    ) -> Result<Scheduled, Error> {
        let schedule = self.check(path, downlink, is_late).await?;
        let scheduled = self.encode(path, downlink, usage).await?;
        let downlink_id = self.outgoing.queues.put(path, scheduled.downlink.clone(), schedule).await?;
        kept();
        self.announce(path, downlink_id, downlink, &scheduled);
        Ok(scheduled)
    }

    /// Checks schedule and port of a downlink, and that its device exists.
    async fn check(&self, path: DevicePath<'_>, downlink: &Downlink, is_late: bool) -> Result<Schedule, Error> {
        let schedule = Schedule::parse(downlink.schedule.as_deref().unwrap_or_default())?;
        parse_port(downlink.port.into())?;
        self.devices.check_exists(path).await?;
        Ok(if is_late { schedule.of_late() } else { schedule })
    }

    /// Counts a downlink that is in the queue, and tells its application and its network.
    fn announce(&self, path: DevicePath<'_>, downlink_id: String, downlink: &Downlink, scheduled: &Scheduled) {
        metrics::downlink_scheduled();
        let now = self.clock.now();
        self.traffic.downlink.mark(now);
        let message = Some(Downlink { schedule: None, ..downlink.clone() });
        let warnings = scheduled.warnings.clone();
        let functions_version = scheduled.version.filter(|_| !warnings.is_empty());
        let event = DownlinkEvent { error: None, message, warnings, time: Some(now), functions_version, downlink_id };
        // What was promised is that the downlink is in the queue.
        self.publish(path, Event::DownlinkScheduled(event)).forget();
        self.outgoing.added(path);
    }

    /// The queue of a device; [`Error::NotFound`] if the device does not exist.
    pub(crate) async fn list(&self, path: DevicePath<'_>) -> Result<Vec<Downlink>, Error> {
        self.outgoing.queues.list(path).await
    }

    /// Empties the queue of a device; [`Error::NotFound`] if the device does not exist. What its network has taken
    /// stays there, but is not sent again.
    pub(crate) async fn clear(&self, path: DevicePath<'_>) -> Result<(), Error> {
        self.outgoing.queues.clear(path).await
    }

    async fn encode(&self, path: DevicePath<'_>, downlink: &Downlink, usage: &Usage) -> Result<Scheduled, Error> {
        let fields = downlink.payload_fields.as_ref().map(|fields| fields.get()).filter(|fields| !is_empty(fields));
        let bytes = downlink.payload_raw.as_ref().filter(|bytes| !bytes.is_empty());
        let Encoded { payload, port, warnings, version, .. } = match (bytes, fields) {
            (Some(_), Some(_)) => return Err(Error::invalid("Downlink", "Both Fields and Payload provided")),
            (None, None) => return Err(Error::invalid("Downlink Payload", "empty")),
            (Some(bytes), None) => Encoded { payload: bytes.clone(), ..Encoded::default() },
            (None, Some(fields)) => self.encode_fields(path, fields, downlink.port, usage).await?,
        };
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Error::invalid("Payload", format_args!("at most {PAYLOAD_BYTES_MAX} bytes are allowed")));
        }
        if payload.is_empty() {
            return Err(Error::invalid("Downlink Payload", "the encoder returned no bytes"));
        }
        let port = Some(downlink.port).filter(|port| *port > 0).or(port).unwrap_or(PORT_DEFAULT);
        let port = parse_port(port.into())?;
        let confirmed = downlink.confirmed;
        let downlink = Downlink { port, confirmed, payload_raw: Some(payload), ..Downlink::default() };
        Ok(Scheduled { downlink, warnings, version })
    }

    /// The output of the encoder that the device has.
    async fn encode_fields(
        &self,
        path: DevicePath<'_>,
        fields: &str,
        port: u8,
        usage: &Usage,
    ) -> Result<Encoded, Error> {
        let application = self.applications.get_for(path).await?;
        if application.summary().conversion() == Conversion::None {
            return Err(Error::invalid("Downlink Payload", "fields supplied, but the payload format converts none"));
        }
        let payload = Payload::without_device(None, port.into(), self.clock.now())?;
        let run = Run { priority: Priority::Live, usage };
        self.payloads.encode(&application, fields, &payload, run).await
    }

    /// The downlinks that were dropped with their device, as their record has them.
    pub(crate) fn dropped(record: Option<&[u8]>) -> Result<Vec<Downlink>, Error> {
        Ok(record.map(queue::downlinks_in).transpose()?.unwrap_or_default())
    }

    /// Tells the application of each downlink that was dropped because its device was moved to another one.
    pub(crate) fn report_moved(&self, path: DevicePath<'_>, dropped: Vec<Downlink>) {
        for downlink in dropped {
            self.publish_error(path, Some(downlink), &Error::Moved).forget();
        }
    }

    /// Tells the application why its downlink was not scheduled. Internal errors are only logged in full.
    fn publish_error(&self, path: DevicePath<'_>, message: Option<Downlink>, error: &Error) -> PublishReceipt {
        metrics::downlink_dropped(error.kind());
        let text = match error.kind() {
            Kind::Internal => {
                tracing::error!(app_id = %path.app_id, error = %ErrorChain(&error), "a downlink failed with an internal error");
                "internal error".to_owned()
            }
            _ => error.to_string(),
        };
        let functions_version = match error {
            Error::Function(error) => error.version,
            _ => None,
        };
        let (error, time) = (Some(text), Some(self.clock.now()));
        let event = DownlinkEvent { error, message, time, functions_version, ..DownlinkEvent::default() };
        self.publish(path, Event::DownlinkError(event))
    }

    fn publish(&self, DevicePath { app_id, dev_id }: DevicePath<'_>, event: Event) -> PublishReceipt {
        self.output.publish(Message { app_id: app_id.clone(), dev_id: dev_id.clone(), event })
    }
}

/// Returns the reason for refusing a downlink that could not be scheduled.
fn refusal(error: &Error) -> DownlinkRefusal {
    match error.kind() {
        Kind::Conflict | Kind::Exhausted | Kind::Timeout | Kind::Unavailable => DownlinkRefusal::Unavailable,
        Kind::Internal => DownlinkRefusal::Failed,
        Kind::NotFound => DownlinkRefusal::UnknownDevice,
        _ => DownlinkRefusal::Invalid,
    }
}

/// The port of a downlink; zero leaves it to the encoder.
pub(crate) fn parse_port(port: u32) -> Result<u8, Error> {
    let port = u8::try_from(port).ok().filter(|port| *port <= PORT_MAX);
    port.ok_or_else(|| {
        Error::invalid("Downlink Port", format_args!("1 to {PORT_MAX} are allowed, and 0 for that of the encoder"))
    })
}

/// The downlink in a message. An array could be read as one, too, but v2 did not take it.
fn parse(body: &[u8]) -> Result<Downlink, Error> {
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Error::invalid("Downlink", "it is not a JSON object"));
    }
    serde_json::from_slice(body).map_err(|error| Error::invalid("Downlink", error))
}

/// Returns true if the text is an empty JSON object.
fn is_empty(fields: &str) -> bool {
    serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(fields).is_ok_and(|fields| fields.is_empty())
}
