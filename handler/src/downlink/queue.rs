//! The downlinks of all devices in the store, and which process hands those of a device over.

use std::{
    collections::VecDeque,
    convert::identity,
    hash::{BuildHasher, RandomState},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use server::status::ErrorChain;
use store::{Batch, Commit, Entry, Key, Store};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use types::{AppEui, Clock, DevEui, DevicePath, Downlink};

use super::device_queue::{DeviceQueue, QueuedDownlink, ReportSource, Schedule, TakenDownlink};
use crate::{
    Error,
    registry::{application::store_keys, device},
};

/// Maximum number of attempts of a change while other processes change the same queue.
const CHANGE_ATTEMPTS_MAX: usize = 20;
/// Time that the claim of a process counts if it does not renew it, because it was killed.
const CLAIM_AGE_MAX: Duration = Duration::from_secs(6);
/// Interval at which a claim is renewed.
const CLAIM_INTERVAL: Duration = Duration::from_secs(2);
/// Number of locks for the queues that this process changes. Devices share them by hash.
const TURNS: usize = 64;

/// The next downlink for a device.
pub(super) struct NextDownlink {
    pub(super) app_eui: AppEui,
    pub(super) dev_eui: DevEui,
    pub(super) downlink: QueuedDownlink,
}

/// A downlink about which its network reports.
pub(super) enum Reported {
    Found(QueuedDownlink),
    /// Whoever hands it over does not know yet that the network has taken it, or never will.
    Leaving(QueuedDownlink),
    /// The network may have taken it a moment ago, and nobody has noted that yet.
    NotYet,
    /// Somebody else has sent it, or it is finished.
    Unknown,
}

/// The queues of all devices.
pub(super) struct Queues {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// One change at a time for the same device: others would be in conflict.
    turns: [AsyncMutex<()>; TURNS],
    hasher: RandomState,
    /// Tells this process's claims from those of others.
    owner: String,
    next_id: AtomicU64,
}

impl Queues {
    pub(super) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let hasher = RandomState::new();
        let turns = std::array::from_fn(|_| AsyncMutex::default());
        let owner = format!("{:016x}", hasher.hash_one("owner"));
        Self { store, clock, turns, hasher, owner, next_id: AtomicU64::new(0) }
    }

    /// Puts a downlink into the queue of its device, and returns its id in events; [`Error::NotFound`] if the device does
    /// not exist.
    pub(super) async fn put(
        &self,
        path: DevicePath<'_>,
        downlink: Downlink,
        schedule: Schedule,
    ) -> Result<String, Error> {
        let id = self.hasher.hash_one(self.next_id.fetch_add(1, Ordering::Relaxed));
        let replaces_others = schedule == Schedule::Replace;
        let downlink = QueuedDownlink { id, downlink, replaces_others, attempts: 0, unanswered: 0 };
        let put = self.change(path, Batch::growing, |queue| queue.insert(&downlink, schedule)).await?;
        put.ok_or_else(|| Error::device_not_found(path))?;
        Ok(downlink.event_id())
    }

    /// The downlinks that wait for a device; [`Error::NotFound`] if the device does not exist.
    pub(super) async fn list(&self, path: DevicePath<'_>) -> Result<Vec<Downlink>, Error> {
        let keys = [store_keys::device(path)?, store_keys::downlinks(path)?];
        let [device, waiting] = self.store.get_array(&keys).await?;
        device.ok_or_else(|| Error::device_not_found(path))?;
        let waiting: VecDeque<QueuedDownlink> = read(waiting.as_ref())?;
        Ok(waiting.into_iter().map(|queued| queued.downlink).collect())
    }

    /// Empties the queue of a device, and sends nothing again that its network has taken; [`Error::NotFound`] if the
    /// device does not exist.
    pub(super) async fn clear(&self, path: DevicePath<'_>) -> Result<(), Error> {
        self.edit(path, DeviceQueue::clear).await?.ok_or_else(|| Error::device_not_found(path))
    }

    /// The first downlink that waits for a device, for this process to hand over; none if there is none, or if another
    /// process is handing one over.
    pub(super) async fn claim(&self, path: DevicePath<'_>) -> Result<Option<NextDownlink>, Error> {
        let claim = store_keys::downlink_claim(path)?;
        let keys = [store_keys::device(path)?, store_keys::downlinks(path)?, claim.clone()];
        let [Some(device), waiting, claimed] = self.store.get_array(&keys).await? else { return Ok(None) };
        let next = read::<QueuedDownlink>(waiting.as_ref())?.pop_front();
        let Some(downlink) = next.filter(|_| claimed.is_none()) else { return Ok(None) };
        let batch = Batch::new().expect_absent(claim.clone());
        let batch = batch.put_until(claim, self.owner.clone(), self.claim_end());
        let is_ours = self.store.commit(batch).await? == Commit::Done;
        let (app_eui, dev_eui) = device::euis(&device.value)?;
        Ok(is_ours.then_some(NextDownlink { app_eui, dev_eui, downlink }))
    }

    /// Gives a claim up.
    pub(super) async fn release(&self, path: DevicePath<'_>) -> Result<(), Error> {
        self.change_claim(path, Batch::delete).await
    }

    /// Waits for what a claim is for, and keeps the claim meanwhile.
    pub(super) async fn holding<T>(&self, path: DevicePath<'_>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = timeout(CLAIM_INTERVAL, work.as_mut()).await {
                return done;
            }
            let renew = |batch: Batch, claim| batch.put_until(claim, self.owner.clone(), self.claim_end());
            if let Err(error) = self.change_claim(path, renew).await {
                let DevicePath { app_id, dev_id } = path;
                tracing::warn!(%app_id, %dev_id, error = %ErrorChain(&error), "cannot say that a downlink is being handed over");
            }
        }
    }

    /// Changes the claim of a device, if it is ours.
    async fn change_claim(&self, path: DevicePath<'_>, change: impl FnOnce(Batch, Key) -> Batch) -> Result<(), Error> {
        let claim = store_keys::downlink_claim(path)?;
        // If it is not ours any more, another process has it.
        _ = self.store.change_claim(&claim, self.owner.as_bytes(), change).await?;
        Ok(())
    }

    fn claim_end(&self) -> u64 {
        self.clock.now().plus(CLAIM_AGE_MAX).as_unix_ms()
    }

    /// A downlink has left under an id of its network.
    pub(super) async fn taken(
        &self,
        path: DevicePath<'_>,
        downlink: &QueuedDownlink,
        (id, source): (&str, ReportSource),
    ) -> Result<(), Error> {
        let taken = TakenDownlink { id: id.to_owned(), downlink: downlink.clone(), source, is_replaced: false };
        self.edit(path, |queue| queue.take(&taken)).await.map(drop)
    }

    /// A network did not answer whether it has taken a downlink. Returns how often that was so; none if the
    /// downlink does not wait any more.
    pub(super) async fn unanswered(
        &self,
        path: DevicePath<'_>,
        downlink: &QueuedDownlink,
    ) -> Result<Option<u8>, Error> {
        Ok(self.change(path, identity, |queue| Ok(queue.unanswered(downlink))).await?.flatten())
    }

    /// A downlink will never leave.
    pub(super) async fn dropped(&self, path: DevicePath<'_>, downlink: &QueuedDownlink) -> Result<(), Error> {
        self.edit(path, |queue| queue.drop_waiting(downlink)).await.map(drop)
    }

    /// The downlink that a network has taken under an id.
    pub(super) async fn reported(&self, path: DevicePath<'_>, id: &str) -> Result<Reported, Error> {
        let keys = [store_keys::downlink_claim(path)?, store_keys::sent_downlinks(path)?, store_keys::downlinks(path)?];
        let [claimed, taken, waiting] = self.store.get_array(&keys).await?;
        if let Some(taken) = read::<TakenDownlink>(taken.as_ref())?.into_iter().find(|taken| taken.id == id) {
            let is_awaited = taken.source != ReportSource::LastReport;
            return Ok(if is_awaited { Reported::Found(taken.downlink) } else { Reported::Unknown });
        }
        let waiting = read::<QueuedDownlink>(waiting.as_ref())?.into_iter().find(|waiting| waiting.network_id() == id);
        Ok(match waiting {
            Some(downlink) => Reported::Leaving(downlink),
            None if claimed.is_some() && !id.is_empty() => Reported::NotYet,
            None => Reported::Unknown,
        })
    }

    /// No further report about a downlink is awaited.
    pub(super) async fn ended(&self, path: DevicePath<'_>, id: &str) -> Result<(), Error> {
        self.edit(path, |queue| queue.end(id)).await.map(drop)
    }

    /// A downlink has to be sent again.
    pub(super) async fn repeated(&self, path: DevicePath<'_>, id: &str) -> Result<(), Error> {
        self.edit(path, |queue| queue.repeat(id)).await.map(drop)
    }

    /// Changes the downlinks of a device in a way that cannot fail.
    async fn edit(&self, path: DevicePath<'_>, edit: impl Fn(&mut DeviceQueue)) -> Result<Option<()>, Error> {
        let edit = |queue: &mut DeviceQueue| {
            edit(queue);
            Ok(())
        };
        self.change(path, identity, edit).await
    }

    /// Changes the downlinks of a device, with a batch that is marked; none if the device does not exist.
    async fn change<T>(
        &self,
        path: DevicePath<'_>,
        mark: impl Fn(Batch) -> Batch,
        change: impl Fn(&mut DeviceQueue) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let keys = [store_keys::device(path)?, store_keys::downlinks(path)?, store_keys::sent_downlinks(path)?];
        let turn = self.hasher.hash_one(path) as usize % TURNS;
        let _turn = self.turns[turn].lock().await;
        let changed = store::retry(CHANGE_ATTEMPTS_MAX, async || {
            // A queue must not outlive its device.
            let [Some(device), waiting, taken] = self.store.get_array(&keys).await? else { return Ok(Some(None)) };
            let mut queue = DeviceQueue { waiting: read(waiting.as_ref())?, taken: read(taken.as_ref())? };
            let result = change(&mut queue)?;
            let [device_key, waiting_key, taken_key] = keys.clone();
            let batch = Batch::new()
                .expect(device_key, device.version)
                .expect_entry(&waiting_key, waiting.as_ref())
                .expect_entry(&taken_key, taken.as_ref());
            let batch = match queue.waiting.is_empty() {
                true => batch.delete(waiting_key),
                false => batch.put(waiting_key, serde_json::to_vec(&queue.waiting)?),
            };
            let batch = match queue.taken.is_empty() {
                true => batch.delete(taken_key),
                false => batch.put(taken_key, serde_json::to_vec(&queue.taken)?),
            };
            Ok::<_, Error>((self.store.commit(mark(batch)).await? == Commit::Done).then_some(Some(result)))
        });
        changed.await?.ok_or_else(|| Error::Conflict(format!("downlink queue of {path}")))
    }
}

/// Reads a list that is stored; a missing one is empty.
fn read<T: for<'de> Deserialize<'de>>(entry: Option<&Entry>) -> Result<VecDeque<T>, Error> {
    Ok(entry.map(|entry| serde_json::from_slice(&entry.value)).transpose()?.unwrap_or_default())
}

/// The downlinks in the record of a queue.
pub(super) fn downlinks_in(record: &[u8]) -> Result<Vec<Downlink>, Error> {
    let waiting: Vec<QueuedDownlink> = serde_json::from_slice(record)?;
    Ok(waiting.into_iter().map(|queued| queued.downlink).collect())
}
