//! The way of a downlink, from an application to the queue of its device. Nothing takes it on from there before there is
//! a link to brokers.
//!
//! In v2 the encoder runs when a downlink is sent. Here it runs when one is scheduled, so that its author learns at once
//! what is wrong.

mod order;
mod queue;

use std::sync::Arc;

use runtime::Urgency;
use store::Store;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use types::{AppId, Clock, DevId, Downlink, DownlinkEvent, Kind, Kinded};

pub(crate) use self::queue::queue_key;
use self::{
    order::Order,
    queue::{Queue, Schedule},
};
use crate::{
    Error,
    application::{Application, Applications, Conversion},
    concurrency_limit::{Share, Shares},
    device::Devices,
    metrics,
    output::{Event, Message, Output, mqtt::PublishedDownlink},
    payload::Payloads,
    status::Traffic,
    uplink::{PAYLOAD_BYTES_MAX, Payload},
};

/// The port of a downlink for which nobody chose one.
const PORT_DEFAULT: u8 = 1;
/// The last port that is for applications.
const PORT_MAX: u8 = 223;
/// How many downlinks are worked on at once; of one application at most half of those that are left.
const PLACES: usize = 256;

/// Brings downlinks from applications to the queues of their devices.
pub struct Downlinks {
    /// The registered applications, with their encoders.
    pub applications: Applications,
    /// Their devices.
    pub devices: Devices,
    /// What turns fields into payloads.
    pub payloads: Arc<Payloads>,
    /// Where events go.
    pub output: Arc<dyn Output>,
    /// Where queues are kept.
    pub store: Arc<dyn Store>,
    /// Counts them.
    pub traffic: Arc<Traffic>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

impl Downlinks {
    /// Takes what arrives until nothing will any more, and returns when all of it was handled.
    pub async fn serve(self: Arc<Self>, mut downlinks: mpsc::Receiver<PublishedDownlink>) {
        let (shares, tasks, mut order) = (Arc::<Shares>::default(), TaskTracker::new(), Order::default());
        while let Some(downlink) = downlinks.recv().await {
            let room = PLACES.saturating_sub(tasks.len());
            let share = shares.take(downlink.app_id.as_str(), room);
            let turn = order.turn(&downlink);
            let this = Arc::clone(&self);
            tasks.spawn(turn.then(this.take(downlink, share)));
        }
        tasks.close();
        tasks.wait().await;
    }

    async fn take(self: Arc<Self>, downlink: PublishedDownlink, share: Option<Share>) {
        let PublishedDownlink { app_id, dev_id, body } = downlink;
        match share {
            Some(_) => self.handle(&app_id, &dev_id, &body).await,
            None => self.report(&app_id, &dev_id, None, &Error::DownlinksBusy),
        }
    }

    /// Schedules a downlink, and publishes the outcome as an event.
    async fn handle(&self, app_id: &AppId, dev_id: &DevId, body: &[u8]) {
        let downlink: Downlink = match serde_json::from_slice(body) {
            Ok(downlink) => downlink,
            Err(error) => return self.report(app_id, dev_id, None, &Error::invalid("Downlink", error)),
        };
        let schedule = downlink.schedule.clone().unwrap_or_default();
        let downlink = Downlink { schedule: None, ..downlink };
        match self.schedule(app_id, dev_id, &downlink, &schedule).await {
            Ok(()) => {
                metrics::downlink_scheduled();
                self.traffic.downlink.mark(self.clock.now());
                let message = DownlinkEvent { error: None, message: Some(downlink) };
                self.publish(app_id, dev_id, Event::DownlinkScheduled(message));
            }
            Err(error) => self.report(app_id, dev_id, Some(downlink), &error),
        }
    }

    /// What waits for a device, the next one first, as bytes and with its port.
    pub async fn waiting(&self, app_id: &AppId, dev_id: &DevId) -> Result<Vec<Downlink>, Error> {
        Queue::new(self.store.clone()).list(app_id, dev_id).await
    }

    async fn schedule(&self, app_id: &AppId, dev_id: &DevId, downlink: &Downlink, schedule: &str) -> Result<(), Error> {
        let schedule = Schedule::of(schedule)?;
        if downlink.port > PORT_MAX {
            return Err(Error::invalid("Downlink Port", format_args!("1 to {PORT_MAX} are allowed")));
        }
        self.devices.get(app_id, dev_id).await?;
        let ready = self.encode(app_id, downlink).await?;
        Queue::new(self.store.clone()).put(app_id, dev_id, &ready, schedule).await
    }

    /// The downlink as it will be sent: with bytes, and with a port.
    async fn encode(&self, app_id: &AppId, downlink: &Downlink) -> Result<Downlink, Error> {
        let fields = downlink.payload_fields.as_ref().map(|fields| fields.get()).filter(|fields| !is_empty(fields));
        let bytes = downlink.payload_raw.as_ref().filter(|bytes| !bytes.is_empty());
        let (payload, port) = match (bytes, fields) {
            (Some(_), Some(_)) => return Err(Error::invalid("Downlink", "Both Fields and Payload provided")),
            (None, None) => return Err(Error::invalid("Downlink Payload", "empty")),
            (Some(bytes), None) => (bytes.clone(), None),
            (None, Some(fields)) => self.run(app_id, fields, downlink.port).await?,
        };
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Error::invalid("Payload", format_args!("at most {PAYLOAD_BYTES_MAX} bytes are allowed")));
        }
        let port = Some(downlink.port).filter(|port| *port > 0).or(port).unwrap_or(PORT_DEFAULT);
        Ok(Downlink { port, confirmed: downlink.confirmed, payload_raw: Some(payload), ..Downlink::default() })
    }

    /// What the application's encoder makes of fields, and the port that it asks for.
    async fn run(&self, app_id: &AppId, fields: &str, port: u8) -> Result<(Vec<u8>, Option<u8>), Error> {
        let application: Application = self.applications.get(app_id).await?;
        if application.conversion() == Conversion::None {
            return Err(Error::invalid("Downlink Payload", "fields supplied, but the payload format converts none"));
        }
        let payload = Payload::dry(None, port.into(), self.clock.now())?;
        let encoded = self.payloads.encode(&application, fields, &payload, Urgency::Live).await?;
        Ok((encoded.payload, encoded.port))
    }

    /// Tells the application why its downlink is not scheduled; what went wrong here, the log only.
    fn report(&self, app_id: &AppId, dev_id: &DevId, message: Option<Downlink>, error: &Error) {
        metrics::downlink_dropped(error.kind());
        let text = match error.kind() {
            Kind::Internal => {
                tracing::error!(%app_id, %error, "a downlink failed through a mistake of ours");
                "internal error".to_owned()
            }
            _ => error.to_string(),
        };
        self.publish(app_id, dev_id, Event::DownlinkError(DownlinkEvent { error: Some(text), message }));
    }

    fn publish(&self, app_id: &AppId, dev_id: &DevId, event: Event) {
        self.output.publish(Message { app_id: app_id.clone(), dev_id: dev_id.clone(), event });
    }
}

/// Whether there are no fields in it, as in `{}`.
fn is_empty(fields: &str) -> bool {
    serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(fields).is_ok_and(|fields| fields.is_empty())
}
