//! The path of an uplink from a network broker: verify and decrypt, hand on, answer.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use api::broker::{DeduplicatedUplinkMessage, DownlinkMessage};
use fair_queue::Lanes;
use futures::FutureExt;
use server::{status::ErrorChain, usage::Usage};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::sleep,
};
use tokio_util::task::TaskTracker;
use types::{AppEui, AppId, DevEui, DevId, DevicePath, ErrorEvent, Kind, Kinded, Metadata, Timestamp};

use super::{
    metadata::{self, metadata},
    receive_window::answer_by,
    response::Template,
};
use crate::{
    Error,
    network::{
        NetworkEvents,
        lorawan::{OpenedFrame, SessionKeys, UplinkFrame},
    },
    output::Event,
    registry::device::{Device, Sender},
    status::metrics,
    uplink::Frame,
};

/// Maximum number of uplinks that are in progress or wait for others of their device. More wait in the connection.
const UPLINKS_MAX: usize = 4096;
/// Maximum number of attempts of a step that fails for a reason that may pass, such as an outage of the store.
const ATTEMPTS_MAX: u32 = 6;
/// The pause after the first failure; it doubles with every further one.
const PAUSE: Duration = Duration::from_millis(200);

/// Takes uplinks from network brokers.
pub struct UplinkReceiver {
    events: Arc<NetworkEvents>,
    progress: Progress,
}

/// The uplinks that are in progress.
struct Progress {
    places: Arc<Semaphore>,
    lanes: Lanes<(AppId, DevId), Arrived>,
    tasks: TaskTracker,
}

/// An uplink that has come in.
pub(super) struct Arrived {
    message: DeduplicatedUplinkMessage,
    replies: mpsc::Sender<DownlinkMessage>,
    at: Timestamp,
    _place: OwnedSemaphorePermit,
}

/// An uplink whose device has certainly sent it.
struct Verified {
    sender: Sender,
    frame: OpenedFrame,
    metadata: Metadata,
    received: Timestamp,
    /// Time of arrival at the handler. The network server prepared the response shortly before.
    arrived: Timestamp,
    is_retry: bool,
}

impl Default for Progress {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(UPLINKS_MAX));
        Self { places, lanes: Lanes::default(), tasks: TaskTracker::new() }
    }
}

impl UplinkReceiver {
    /// Takes uplinks on the same stores as the events of other networks.
    pub fn new(events: Arc<NetworkEvents>) -> Self {
        Self { events, progress: Progress::default() }
    }

    /// Takes an uplink; downlinks in response to it are sent to `replies`. Waits while too many are in progress.
    pub(super) async fn receive(
        self: &Arc<Self>,
        message: DeduplicatedUplinkMessage,
        replies: mpsc::Sender<DownlinkMessage>,
    ) {
        let (Ok(app_id), Ok(dev_id)) = (message.app_id.parse(), message.dev_id.parse()) else {
            tracing::warn!(app_id = message.app_id, dev_id = message.dev_id, "dropped an uplink with malformed ids");
            return metrics::uplink_dropped(Kind::Invalid);
        };
        let at = self.events.clock.now();
        // It fails only when it is closed, which it never is.
        let Ok(place) = self.progress.places.clone().acquire_owned().await else { return };
        let (key, arrived) = ((app_id, dev_id), Arrived { message, replies, at, _place: place });
        if self.progress.lanes.add(&key, arrived) {
            let this = self.clone();
            self.progress.tasks.spawn(async move {
                let path = DevicePath { app_id: &key.0, dev_id: &key.1 };
                while let Some(arrived) = this.progress.lanes.next(&key) {
                    // A panic, which has been logged, ends its uplink only: nobody else would work on the lane.
                    let handled = AssertUnwindSafe(this.handle(path, arrived)).catch_unwind();
                    if handled.await.is_err() {
                        metrics::uplink_dropped(Kind::Internal);
                    }
                }
            });
        }
    }

    /// Finishes the uplinks in progress. Nothing may be received any more.
    pub(super) async fn finish(&self) {
        self.progress.tasks.close();
        self.progress.tasks.wait().await;
    }

    async fn handle(&self, path: DevicePath<'_>, Arrived { mut message, replies, at, .. }: Arrived) {
        self.events.traffic.uplink.mark(self.events.clock.now());
        let answer_by = answer_by(&message);
        let template = message.response_template.take();
        let verified = match self.take_in(path, &message, at).await {
            Ok(verified) => verified,
            Err(error) => return self.publish_error(path, &error).await,
        };
        let template = Template { message: template, answer_by, replies, clock: self.events.clock.clone() };
        if let Err(error) = self.respond(&verified, template).await {
            let DevicePath { app_id, dev_id } = path;
            tracing::warn!(%app_id, %dev_id, error = %ErrorChain(&error), "cannot answer an uplink");
            metrics::downlink_dropped(error.kind());
        }
    }

    /// Verifies an uplink, and brings it to its application.
    async fn take_in(
        &self,
        path: DevicePath<'_>,
        message: &DeduplicatedUplinkMessage,
        arrived: Timestamp,
    ) -> Result<Verified, Error> {
        let f_cnt = metadata::lorawan(message.protocol_metadata.as_ref()).map_or(0, |lorawan| lorawan.f_cnt);
        let frame = UplinkFrame::parse(&message.payload, f_cnt)?;
        let sender = while_unavailable(|| self.sender(path, message)).await?;
        let frame = frame.open(&SessionKeys::of(&sender.device)?)?;
        let is_retry = sender.counters.as_ref().is_some_and(|counters| counters.f_cnt_up == frame.f_cnt);
        let received = if message.server_time == 0 { arrived } else { Timestamp::from_nanos(message.server_time) };
        let (received_by, gateways) = (message.protocol_metadata.as_ref(), &message.gateway_metadata);
        let metadata = metadata(received_by, gateways, message.server_time, message.payload.len());
        let metadata = located(metadata, &sender.device);
        let mut verified = Verified { metadata, sender, frame, received, arrived, is_retry };
        let published = while_unavailable(|| self.publish(&verified)).await;
        if published.as_ref().is_err_and(|error| error.kind() == Kind::NotFound) {
            // It was moved since it was read, and nothing was published.
            verified.sender = while_unavailable(|| self.sender(path, message)).await?;
            while_unavailable(|| self.publish(&verified)).await?;
        } else {
            published?;
        }
        Ok(verified)
    }

    /// The device that a network broker names, or the one that has its EUIs since it was moved to another application:
    /// the network server may not know of that yet.
    async fn sender(&self, path: DevicePath<'_>, message: &DeduplicatedUplinkMessage) -> Result<Sender, Error> {
        let missing = match self.events.devices.sender(path).await {
            Err(error) if error.kind() == Kind::NotFound => error,
            found => return found,
        };
        let euis = (AppEui::try_from(message.app_eui.as_slice()), DevEui::try_from(message.dev_eui.as_slice()));
        let (Ok(app_eui), Ok(dev_eui)) = euis else { return Err(missing) };
        self.events.devices.sender_elsewhere((app_eui, dev_eui), path).await?.ok_or(missing)
    }

    /// Brings an uplink to its application.
    async fn publish(&self, verified: &Verified) -> Result<(), Error> {
        match self.events.uplinks.handle(verified.to_frame(), &Usage::default()).await {
            // The validator returned false, and the application was told so. The device is answered nevertheless.
            Err(error) if error.kind() == Kind::Invalid => Ok(()),
            handled => handled.map(drop),
        }
    }

    /// Notes the counters, and answers the device.
    async fn respond(&self, verified: &Verified, template: Template) -> Result<(), Error> {
        let Verified { sender, frame, received, arrived, is_retry, .. } = verified;
        let f_cnt_down = template.f_cnt();
        let f_cnt_after = f_cnt_down.map(|f_cnt| f_cnt.wrapping_add(1));
        let mut counters = sender.counters_after(frame.f_cnt, f_cnt_after, *received);
        while_unavailable(|| self.events.devices.note_counters(sender, &counters)).await?;
        if !is_retry {
            let (path, is_acknowledged) = (sender.device.path(), frame.is_acknowledgement);
            while_unavailable(|| self.events.outgoing.end_response(path, is_acknowledged)).await?;
        }
        let is_outdated = f_cnt_down.is_some_and(|f_cnt| counters.is_outdated(f_cnt, *arrived));
        if !template.respond(&self.events.outgoing, &sender.device, (*is_retry, is_outdated)).await? {
            return Ok(());
        }
        self.events.traffic.downlink.mark(self.events.clock.now());
        counters.note_response(f_cnt_down.unwrap_or_default(), self.events.clock.now());
        while_unavailable(|| self.events.devices.note_counters(sender, &counters)).await
    }

    /// Tells the application why its uplink is missing. Internal errors are only logged in full.
    async fn publish_error(&self, DevicePath { app_id, dev_id }: DevicePath<'_>, error: &Error) {
        tracing::warn!(%app_id, %dev_id, error = %ErrorChain(error), "dropped an uplink");
        metrics::uplink_dropped(error.kind());
        let error = if error.kind() == Kind::Internal { "internal error".to_owned() } else { error.to_string() };
        let event = Event::UpError(ErrorEvent { error, time: Some(self.events.clock.now()), ..ErrorEvent::default() });
        if let Err(error) = self.events.publish(app_id, dev_id.clone(), event).wait().await {
            tracing::warn!(%app_id, %dev_id, error = %ErrorChain(&error), "cannot publish the error of an uplink");
        }
    }
}

impl Verified {
    fn to_frame(&self) -> Frame {
        let Self { sender, frame, metadata, received, is_retry, .. } = self;
        Frame {
            app_id: sender.device.app_id.clone(),
            dev_id: sender.device.dev_id.clone(),
            port: frame.port,
            payload: frame.payload.clone(),
            received: *received,
            f_cnt: frame.f_cnt,
            confirmed: frame.is_confirmed,
            is_retry: *is_retry,
            metadata: metadata.clone(),
            extra: String::new(),
            warnings: Vec::new(),
        }
    }
}

/// Names the source of the device's location, which is added later.
fn located(metadata: Metadata, device: &Device) -> Metadata {
    let is_located = device.latitude != 0.0 || device.longitude != 0.0;
    let location_source = if is_located { "registry".to_owned() } else { String::new() };
    Metadata { location_source, ..metadata }
}

/// Attempts something until it succeeds, or fails for a reason that does not pass.
async fn while_unavailable<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS_MAX {
        match attempt().await {
            Err(error) if matches!(error.kind(), Kind::Unavailable | Kind::Conflict) => sleep(pause).await,
            done => return done,
        }
        pause *= 2;
    }
    attempt().await
}
