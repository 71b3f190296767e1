//! Downlinks from the queues of devices to their networks, and what these report about them.

mod handed_over;

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use server::status::ErrorChain;
use store::Store;
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use types::{
    AppId, DevEui, DevId, Downlink, DownlinkEvent, DownlinkOutcome, DownlinkSentEvent, NetworkDownlink, NetworkRefusal,
    SentDownlink,
};

use self::handed_over::{HandedOver, Waiting};
use crate::{
    Error,
    application::store_keys,
    metrics,
    output::{Event, Kept, Message, Output},
};

/// How many devices are served at once.
const LANES: usize = 16;
/// How many devices wait for each lane; others are found by the next search.
const WAITING_MAX: usize = 1024;
/// How often queues are searched for downlinks that could not leave.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);
/// How many queues are read at once.
const PAGE_MAX: usize = 256;

/// A network that takes downlinks for its devices.
pub trait Network: Send + Sync {
    /// Hands a downlink over to the network, which sends it when the device listens; returns the id that reports about
    /// it will have. A refusal that may pass is tried again later.
    fn send(&self, dev_eui: DevEui, downlink: NetworkDownlink) -> BoxFuture<'_, Result<String, NetworkRefusal>>;
}

/// The networks through which the downlinks of applications leave.
pub type Networks = BTreeMap<AppId, Arc<dyn Network>>;

type Address = (AppId, DevId);

/// Hands downlinks over to networks.
pub struct Outgoing {
    store: Arc<dyn Store>,
    output: Arc<dyn Output>,
    /// Set once the networks are there, which report to [`Self::report`].
    networks: OnceLock<Networks>,
    lanes: Vec<Lane>,
    hasher: RandomState,
    /// Devices whose downlink is being handed over: reports about it wait until its id is known.
    busy: Mutex<HashSet<Address>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Devices that are served one after the other.
struct Lane {
    sender: mpsc::Sender<Address>,
    receiver: AsyncMutex<mpsc::Receiver<Address>>,
}

impl Outgoing {
    /// Nothing leaves before [`Self::start`].
    pub fn new(store: Arc<dyn Store>, output: Arc<dyn Output>) -> Self {
        let lane = || {
            let (sender, receiver) = mpsc::channel(WAITING_MAX);
            Lane { sender, receiver: AsyncMutex::new(receiver) }
        };
        Self {
            store,
            output,
            networks: OnceLock::new(),
            lanes: std::iter::repeat_with(lane).take(LANES).collect(),
            hasher: RandomState::new(),
            busy: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Sends what is in the queues of these applications' devices, and what will be.
    pub fn start(self: &Arc<Self>, networks: Networks) {
        if networks.is_empty() || self.networks.set(networks).is_err() {
            return;
        }
        for lane in 0..LANES {
            let this = self.clone();
            self.tasks.spawn(async move { this.serve(lane).await });
        }
        let this = self.clone();
        self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(async move { this.search().await }));
    }

    /// Finishes what is being handed over.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Whether the downlinks of an application leave through a network.
    pub(super) fn has_network(&self, app_id: &AppId) -> bool {
        self.network(app_id).is_some()
    }

    /// A device has a new downlink.
    pub(super) fn added(&self, app_id: &AppId, dev_id: &DevId) {
        if self.network(app_id).is_some() {
            // The next search finds it if there is no room.
            _ = self.lane(app_id, dev_id).try_send((app_id.clone(), dev_id.clone()));
        }
    }

    /// Tells an application what its network reports about a downlink.
    pub(crate) async fn report(
        &self,
        app_id: &AppId,
        dev_id: &DevId,
        id: &str,
        outcome: DownlinkOutcome,
    ) -> Result<(), Error> {
        if self.lock_busy().contains(&(app_id.clone(), dev_id.clone())) {
            return Err(Error::Conflict(format!("downlink queue of {app_id}:{dev_id}")));
        }
        let is_sent = matches!(outcome, DownlinkOutcome::Sent { .. });
        let remove = |downlink: &Downlink| !(is_sent && downlink.confirmed);
        let found = handed_over::take(self.store.as_ref(), app_id, dev_id, id, remove).await?;
        let event = match (outcome, found) {
            (DownlinkOutcome::Failed(error), message) if message.is_some() || id.is_empty() => {
                Event::DownlinkError(DownlinkEvent { error: Some(error), message })
            }
            // Somebody else has sent it, or the application has replaced it.
            (_, None) => return Ok(()),
            (DownlinkOutcome::Sent { gateway_id, config }, Some(downlink)) => {
                let message = sent(app_id, dev_id, downlink);
                Event::DownlinkSent(Box::new(DownlinkSentEvent { message, gateway_id, config }))
            }
            (_, message) => Event::DownlinkAck(DownlinkEvent { error: None, message }),
        };
        self.publish(app_id, dev_id, event).wait().await
    }

    async fn serve(&self, lane: usize) {
        let Some(lane) = self.lanes.get(lane) else { return };
        let mut devices = lane.receiver.lock().await;
        while let Some(Some((app_id, dev_id))) = self.stop.run_until_cancelled(devices.recv()).await {
            let Some(network) = self.network(&app_id) else { continue };
            if let Err(error) = self.send_all(network.as_ref(), &app_id, &dev_id).await {
                tracing::warn!(%app_id, %dev_id, error = %ErrorChain(&error), "cannot hand a downlink over: trying again");
            }
        }
    }

    /// Hands over what is in the queue of a device, until that fails for a reason that may pass.
    async fn send_all(&self, network: &dyn Network, app_id: &AppId, dev_id: &DevId) -> Result<(), Error> {
        let address = (app_id.clone(), dev_id.clone());
        while !self.stop.is_cancelled()
            && let Some(Waiting { dev_eui, downlink }) = handed_over::next(self.store.as_ref(), app_id, dev_id).await?
        {
            self.lock_busy().insert(address.clone());
            let is_done = self.send(network, &address, dev_eui, downlink).await;
            self.lock_busy().remove(&address);
            if !is_done? {
                break;
            }
        }
        Ok(())
    }

    /// Hands a downlink over; false if the network cannot take it now.
    async fn send(
        &self,
        network: &dyn Network,
        (app_id, dev_id): &Address,
        dev_eui: DevEui,
        downlink: Downlink,
    ) -> Result<bool, Error> {
        match network.send(dev_eui, for_network(&downlink)).await {
            Ok(id) => {
                let handed_over = HandedOver { id, downlink: downlink.clone() };
                handed_over::done(self.store.as_ref(), app_id, dev_id, &downlink, Some(handed_over)).await?;
                Ok(true)
            }
            Err(refusal) if refusal.may_pass() => {
                tracing::warn!(%app_id, %dev_id, reason = refusal.reason(), "a downlink waits for its network");
                Ok(false)
            }
            Err(refusal) => {
                let message = Some(Downlink { schedule: None, ..downlink.clone() });
                let event = DownlinkEvent { error: Some(refusal.reason().to_owned()), message };
                self.publish(app_id, dev_id, Event::DownlinkError(event)).wait().await?;
                handed_over::done(self.store.as_ref(), app_id, dev_id, &downlink, None).await?;
                metrics::downlink_dropped(types::Kinded::kind(&refusal));
                Ok(true)
            }
        }
    }

    /// Finds downlinks that could not leave before, also those from before a restart.
    async fn search(&self) {
        loop {
            for app_id in self.networks.get().into_iter().flatten().map(|(app_id, _)| app_id) {
                if let Err(error) = self.search_in(app_id).await {
                    tracing::warn!(%app_id, error = %ErrorChain(&error), "cannot search the queues of devices");
                }
            }
            sleep(SEARCH_INTERVAL).await;
        }
    }

    async fn search_in(&self, app_id: &AppId) -> Result<(), Error> {
        let prefix = store_keys::all_downlinks(app_id)?;
        let mut last = None;
        loop {
            let mut queues: VecDeque<_> = self.store.list(&prefix, last.as_ref(), PAGE_MAX).await?.into();
            let Some(end) = queues.back().map(|queue| queue.key.clone()) else { return Ok(()) };
            for queue in queues.drain(..) {
                let dev_id: DevId = queue.key.path().strip_prefix(prefix.path()).unwrap_or_default().parse()?;
                let lane = self.lane(app_id, &dev_id);
                // It fails only when the lanes have ended.
                _ = lane.send((app_id.clone(), dev_id)).await;
            }
            last = Some(end);
        }
    }

    fn network(&self, app_id: &AppId) -> Option<&Arc<dyn Network>> {
        self.networks.get()?.get(app_id)
    }

    fn lane(&self, app_id: &AppId, dev_id: &DevId) -> &mpsc::Sender<Address> {
        let lane = self.hasher.hash_one((app_id, dev_id)) as usize % LANES;
        &self.lanes[lane].sender
    }

    fn publish(&self, app_id: &AppId, dev_id: &DevId, event: Event) -> Kept {
        self.output.publish(Message { app_id: app_id.clone(), dev_id: dev_id.clone(), event })
    }

    fn lock_busy(&self) -> MutexGuard<'_, HashSet<Address>> {
        // A panic elsewhere leaves the set usable.
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn for_network(downlink: &Downlink) -> NetworkDownlink {
    NetworkDownlink {
        port: downlink.port,
        confirmed: downlink.confirmed,
        payload: downlink.payload_raw.clone().unwrap_or_default(),
        replaces_others: downlink.schedule.as_deref() == Some(super::queue::REPLACE),
    }
}

fn sent(app_id: &AppId, dev_id: &DevId, downlink: Downlink) -> SentDownlink {
    let Downlink { port, confirmed, payload_raw, .. } = downlink;
    SentDownlink { app_id: app_id.clone(), dev_id: dev_id.clone(), port, confirmed, payload_raw }
}
