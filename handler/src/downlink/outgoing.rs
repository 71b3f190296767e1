//! Downlinks from the queues of devices to their networks, and what these report about them.

use std::{
    collections::{BTreeMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::future::BoxFuture;
use server::status::ErrorChain;
use store::Store;
use tokio::{sync::mpsc, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use types::{
    AppEui, AppId, Clock, DevEui, DevId, DevicePath, Downlink, DownlinkEvent, DownlinkOutcome, DownlinkSentEvent, Kind,
    Kinded, NetworkDownlink, NetworkRefusal, SentDownlink, Timestamp,
};

use super::{
    device_queue::{QueuedDownlink, ReportSource},
    queue::{NextDownlink, Queues, Reported},
};
use crate::{
    Error,
    output::{Event, Message, Output, PublishReceipt},
    registry::application::store_keys,
    status::metrics,
};

/// Number of devices of an application that are served at once.
const WORKERS: usize = 16;
/// Number of devices that wait for each worker; others are found by the next search.
const WAITING_MAX: usize = 1024;
/// Interval at which queues are searched for downlinks that could not leave.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);
/// Number of times that a downlink is sent that the device has to acknowledge, but does not.
const ATTEMPTS_MAX: u8 = 8;
/// Number of times that a downlink is handed over to a network that does not answer, and may have taken it each time.
const UNANSWERED_MAX: u8 = 3;
/// Pause before the next attempt while the store is unavailable.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Number of queues read at once.
const PAGE_MAX: usize = 256;

/// Consequence of a report for its downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Another report is awaited.
    Awaits,
    /// It is finished.
    Ends,
    /// It is sent again.
    Repeats,
}

/// A network that takes downlinks for its devices.
pub trait DownlinkNetwork: Send + Sync {
    /// Hands a downlink over to the network, which sends it when the device listens; returns the id that reports about
    /// it will have: that of the downlink if the network lets us choose it. A refusal that may pass is tried again
    /// later, one of [`Kind::Timeout`](types::Kind::Timeout) only a few times, because the network may have taken it.
    fn send(&self, dev_eui: DevEui, downlink: NetworkDownlink) -> BoxFuture<'_, Result<String, NetworkRefusal>>;
}

/// The networks through which the downlinks of applications leave.
pub type Networks = BTreeMap<AppId, Arc<dyn DownlinkNetwork>>;

/// Hands downlinks over to networks.
pub struct Outgoing {
    pub(super) queues: Queues,
    store: Arc<dyn Store>,
    output: Arc<dyn Output>,
    pub(super) clock: Arc<dyn Clock>,
    /// Set once the networks are there, which report to [`Self::report`].
    workers: OnceLock<BTreeMap<AppId, Workers>>,
    hasher: RandomState,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The devices of an application that wait to be served, those of a worker one after the other. Each application has
/// workers of its own, so that a network that is slow to answer holds up its own devices only.
type Workers = Vec<mpsc::Sender<DevId>>;

impl Outgoing {
    /// Nothing leaves before [`Self::start`].
    pub fn new(store: Arc<dyn Store>, output: Arc<dyn Output>, clock: Arc<dyn Clock>) -> Self {
        Self {
            queues: Queues::new(store.clone(), clock.clone()),
            store,
            output,
            clock,
            workers: OnceLock::new(),
            hasher: RandomState::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Sends the queued downlinks of these applications' devices, and those that are queued later.
    pub fn start(self: &Arc<Self>, networks: Networks) {
        let open = |app_id: &AppId| {
            let (senders, receivers): (Workers, Vec<_>) = (0..WORKERS).map(|_| mpsc::channel(WAITING_MAX)).unzip();
            ((app_id.clone(), senders), receivers)
        };
        let (workers, receivers): (_, Vec<_>) = networks.keys().map(open).unzip();
        if self.workers.set(workers).is_err() {
            return;
        }
        for ((app_id, network), receivers) in networks.into_iter().zip(receivers) {
            for devices in receivers {
                let (this, app_id, network) = (self.clone(), app_id.clone(), network.clone());
                self.tasks.spawn(async move { this.serve(&app_id, network.as_ref(), devices).await });
            }
            let this = self.clone();
            let search = async move { this.search(&app_id).await };
            self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(search));
        }
    }

    /// Finishes the hand-overs in progress.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// A device has a new downlink.
    pub(super) fn added(&self, path: DevicePath<'_>) {
        if let Some(worker) = self.worker(path) {
            // The next search finds it if there is no room.
            _ = worker.try_send(path.dev_id.clone());
        }
    }

    /// Publishes the report of a network about a downlink to its application.
    pub(crate) async fn report(&self, path: DevicePath<'_>, id: &str, outcome: DownlinkOutcome) -> Result<(), Error> {
        let downlink = match self.queues.reported(path, id).await? {
            Reported::Found(downlink) => Some(downlink),
            Reported::Leaving(downlink) => {
                // It must not be handed over again.
                self.queues.taken(path, &downlink, (id, ReportSource::Report)).await?;
                Some(downlink)
            }
            Reported::NotYet => return Err(Error::HandingOver(path.dev_id.clone())),
            Reported::Unknown => None,
        };
        let fate = downlink.as_ref().map(|downlink| fate(&outcome, downlink));
        if fate == Some(Fate::Repeats) {
            self.queues.repeated(path, id).await?;
            self.added(path);
            return Ok(());
        }
        let time = Some(self.clock.now());
        if let Some(event) = event(outcome, downlink, path, id.is_empty(), time) {
            self.publish(path, event).wait().await?;
        }
        // Only now, because the report comes again if the event is not kept.
        if fate == Some(Fate::Ends) {
            self.queues.ended(path, id).await?;
        }
        Ok(())
    }

    async fn serve(&self, app_id: &AppId, network: &dyn DownlinkNetwork, mut devices: mpsc::Receiver<DevId>) {
        while let Some(Some(dev_id)) = self.stop.run_until_cancelled(devices.recv()).await {
            let path = DevicePath { app_id, dev_id: &dev_id };
            if let Err(error) = self.send_all(network, path).await {
                tracing::warn!(%app_id, %dev_id, error = %ErrorChain(&error), "cannot hand a downlink over: trying again");
            }
        }
    }

    /// Hands over the queued downlinks of a device, until that fails for a reason that may pass.
    async fn send_all(&self, network: &dyn DownlinkNetwork, path: DevicePath<'_>) -> Result<(), Error> {
        while !self.stop.is_cancelled()
            && let Some(waiting) = self.queues.claim(path).await?
        {
            let is_done = self.send(network, path, waiting).await;
            self.queues.release(path).await?;
            if !is_done? {
                break;
            }
        }
        Ok(())
    }

    /// Hands a downlink over; false if the network cannot take it now.
    async fn send(
        &self,
        network: &dyn DownlinkNetwork,
        path: DevicePath<'_>,
        NextDownlink { app_eui, dev_eui, downlink }: NextDownlink,
    ) -> Result<bool, Error> {
        let sending = network.send(dev_eui, for_network(&downlink, app_eui));
        let refusal = match self.queues.holding(path, sending).await {
            Ok(id) => {
                let taken = self.keep_taken(path, &downlink, &id);
                self.queues.holding(path, taken).await?;
                return Ok(true);
            }
            Err(refusal) => refusal,
        };
        if !refusal.may_pass() {
            self.give_up(path, &downlink, &refusal, refusal.reason().to_owned()).await?;
            self.queues.dropped(path, &downlink).await?;
            return Ok(true);
        }
        if !refusal.may_be_taken() {
            let DevicePath { app_id, dev_id } = path;
            tracing::warn!(%app_id, %dev_id, reason = refusal.reason(), "a downlink waits for its network");
            return Ok(false);
        }
        let Some(unanswered) = self.queues.unanswered(path, &downlink).await? else {
            // The network has reported about it since, or the application does not want it any more.
            return Ok(true);
        };
        if unanswered < UNANSWERED_MAX {
            let DevicePath { app_id, dev_id } = path;
            tracing::warn!(%app_id, %dev_id, reason = refusal.reason(), "a downlink may have left: handing it over again");
            return Ok(false);
        }
        let reason = format!("{}; it may be sent nevertheless, and is not handed over again", refusal.reason());
        self.give_up(path, &downlink, &refusal, reason).await?;
        self.queues.taken(path, &downlink, (&downlink.network_id(), ReportSource::Answer)).await?;
        Ok(true)
    }

    /// Notes that the network has taken a downlink, however long the store is away: otherwise it would be handed over
    /// again.
    async fn keep_taken(&self, path: DevicePath<'_>, downlink: &QueuedDownlink, id: &str) -> Result<(), Error> {
        loop {
            let error = match self.queues.taken(path, downlink, (id, ReportSource::Answer)).await {
                Err(error) if error.kind() == Kind::Unavailable => error,
                done => return done,
            };
            let DevicePath { app_id, dev_id } = path;
            tracing::warn!(%app_id, %dev_id, error = %ErrorChain(&error), "cannot note that a downlink has left: trying again");
            if self.stop.run_until_cancelled(sleep(RETRY_INTERVAL)).await.is_none() {
                return Err(error);
            }
        }
    }

    /// Tells the application that a downlink is not handed over any more.
    async fn give_up(
        &self,
        path: DevicePath<'_>,
        downlink: &QueuedDownlink,
        refusal: &NetworkRefusal,
        reason: String,
    ) -> Result<(), Error> {
        let DevicePath { app_id, dev_id } = path;
        tracing::warn!(%app_id, %dev_id, reason, "gave a downlink up");
        metrics::downlink_dropped(refusal.kind());
        let message = Some(downlink.downlink.clone());
        let (error, time) = (Some(reason), Some(self.clock.now()));
        let downlink_id = downlink.event_id();
        let event = DownlinkEvent { error, message, time, downlink_id, ..DownlinkEvent::default() };
        self.publish(path, Event::DownlinkError(event)).wait().await
    }

    /// Finds downlinks that could not leave before, also those from before a restart.
    async fn search(&self, app_id: &AppId) {
        loop {
            if let Err(error) = self.search_once(app_id).await {
                tracing::warn!(%app_id, error = %ErrorChain(&error), "cannot search the queues of devices");
            }
            sleep(SEARCH_INTERVAL).await;
        }
    }

    async fn search_once(&self, app_id: &AppId) -> Result<(), Error> {
        let prefix = store_keys::all_downlinks(app_id)?;
        let mut last = None;
        loop {
            let mut queues: VecDeque<_> = self.store.list(&prefix, last.as_ref(), PAGE_MAX).await?.into();
            let Some(end) = queues.back().map(|queue| queue.key.clone()) else { return Ok(()) };
            for queue in queues.drain(..) {
                let dev_id: DevId = queue.key.path().strip_prefix(prefix.path()).unwrap_or_default().parse()?;
                if let Some(worker) = self.worker(DevicePath { app_id, dev_id: &dev_id }) {
                    // It fails only when the workers have ended.
                    _ = worker.send(dev_id).await;
                }
            }
            last = Some(end);
        }
    }

    /// The worker of a device; none if no network takes downlinks of its application.
    fn worker(&self, DevicePath { app_id, dev_id }: DevicePath<'_>) -> Option<&mpsc::Sender<DevId>> {
        self.workers.get()?.get(app_id)?.get(self.hasher.hash_one(dev_id) as usize % WORKERS)
    }

    pub(super) fn publish(&self, DevicePath { app_id, dev_id }: DevicePath<'_>, event: Event) -> PublishReceipt {
        self.output.publish(Message { app_id: app_id.clone(), dev_id: dev_id.clone(), event })
    }
}

fn for_network(queued: &QueuedDownlink, app_eui: AppEui) -> NetworkDownlink {
    let QueuedDownlink { downlink, replaces_others, .. } = queued;
    NetworkDownlink {
        id: queued.network_id(),
        app_eui,
        port: downlink.port,
        confirmed: downlink.confirmed,
        payload: downlink.payload_raw.clone().unwrap_or_default(),
        replaces_others: *replaces_others,
    }
}

/// Returns the consequence of this report for a downlink.
fn fate(outcome: &DownlinkOutcome, queued: &QueuedDownlink) -> Fate {
    match outcome {
        DownlinkOutcome::Sent { .. } if queued.downlink.confirmed => Fate::Awaits,
        DownlinkOutcome::NotAcknowledged if queued.attempts.saturating_add(1) < ATTEMPTS_MAX => Fate::Repeats,
        _ => Fate::Ends,
    }
}

/// Returns the event for the application; none for downlinks that somebody else has sent, or that it has replaced.
fn event(
    outcome: DownlinkOutcome,
    queued: Option<QueuedDownlink>,
    path: DevicePath<'_>,
    is_anonymous: bool,
    time: Option<Timestamp>,
) -> Option<Event> {
    let downlink_id = queued.as_ref().map(QueuedDownlink::event_id).unwrap_or_default();
    let about = |message| DownlinkEvent { message, time, downlink_id: downlink_id.clone(), ..DownlinkEvent::default() };
    Some(match (outcome, queued.map(|queued| queued.downlink)) {
        (DownlinkOutcome::Failed(error), message) if message.is_some() || is_anonymous => {
            Event::DownlinkError(DownlinkEvent { error: Some(error), ..about(message) })
        }
        (_, None) => return None,
        (DownlinkOutcome::Sent { gateway_id, config }, Some(downlink)) => {
            let message = sent(path, downlink);
            let event = DownlinkSentEvent { payload: None, message, gateway_id, config, time, downlink_id };
            Event::DownlinkSent(Box::new(event))
        }
        (DownlinkOutcome::NotAcknowledged, message) => {
            let error = "the device did not acknowledge the downlink, which is not sent again".to_owned();
            Event::DownlinkError(DownlinkEvent { error: Some(error), ..about(message) })
        }
        (_, message) => Event::DownlinkAck(about(message)),
    })
}

pub(super) fn sent(DevicePath { app_id, dev_id }: DevicePath<'_>, downlink: Downlink) -> SentDownlink {
    let Downlink { port, confirmed, payload_raw, .. } = downlink;
    SentDownlink { app_id: app_id.clone(), dev_id: dev_id.clone(), port, confirmed, payload_raw }
}
