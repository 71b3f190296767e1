//! A store that refuses what would exceed the stored bytes of its owner, or use up the reserve of the disk.
//!
//! The store counts the bytes of each tag. The last counts, and the bytes put since, are in memory here.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use metrics::{describe_gauge, gauge};
use parking_lot::{Mutex, MutexGuard};
use store::{
    Batch, Commit, Entry, Error, Key, Page, Rate, Snapshot, Store, StoreDisk, Tag, TakenTokens, UsageCursor, UsagePage,
};
use tokio::time::{Instant, sleep, timeout};

use super::{Budget, Owners, Resource, metrics::refused, owners::Entity, tags::Tags};
use crate::error::status::ErrorChain;

/// Interval between counts of the tags that have changed.
const INTERVAL: Duration = Duration::from_secs(1);
/// All tags are counted again after this many times the duration of a count.
const PAUSE_FACTOR: u32 = 50;
/// Maximum time to wait at the start until everything is counted.
const FIRST_COUNT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of tags counted at a time; the store takes no more.
const COUNTED_AT_A_TIME: usize = store::GET_KEYS_MAX;
/// Maximum number of applications whose owners are asked for at a time, and of unknown ones among them.
const ASKED_AT_A_TIME: usize = 256;
const UNKNOWN_AT_A_TIME: usize = 8;
/// Maximum size of a file as a multiple of the bytes of its entries, with losses in its pages. The rest of it is free.
const FILE_FACTOR: u64 = 3;
/// The reserve is at most this part of the disk, so that a small disk can be used, too.
const RESERVE_PART: u64 = 20;
/// The disk is measured again when owners have put this many bytes since: others may have filled it meanwhile, and the
/// pages of the file need more than what was put. The store allocates more than that ahead.
const MEASURED_EVERY_BYTES: u64 = 32 << 10;

const ROOM: &str = "airlock_stored_room_bytes";

/// A store that refuses what would exceed the stored bytes of its owner, or use up the reserve of the disk.
///
/// Only batches that are marked as growing are refused, and none that makes what is stored smaller.
pub struct BudgetedStore {
    store: Arc<dyn Store>,
    budget: Arc<Budget>,
    /// Weak, because the source of the owners may use this store.
    owners: Weak<Owners>,
    disk: Option<ReservedDisk>,
    tags: Mutex<Tags>,
    /// Number of bytes that owners can still store until the disk has only its reserve.
    room: AtomicU64,
    /// Number of bytes that owners have put since the disk was measured.
    put_since: AtomicU64,
}

/// The disk of a store, and the space on it that stays free for the service itself.
pub struct ReservedDisk {
    /// The disk with the file of the store.
    pub disk: StoreDisk,
    /// Space that stays free, in bytes; at most a twentieth of the disk.
    pub reserve_bytes: u64,
}

impl BudgetedStore {
    /// Counts the bytes in `store`, and goes on counting as long as somebody uses this.
    pub async fn open(
        store: Arc<dyn Store>,
        disk: Option<ReservedDisk>,
        (budget, owners): (Arc<Budget>, &Arc<Owners>),
    ) -> Arc<Self> {
        describe_gauge!(ROOM, "How many bytes owners can store until the disk of the store has only its reserve");
        let room = AtomicU64::new(u64::MAX);
        let owners = Arc::downgrade(owners);
        let this =
            Arc::new(Self { store, budget, owners, disk, tags: Mutex::default(), room, put_since: AtomicU64::new(0) });
        this.measure_disk();
        if timeout(FIRST_COUNT_TIMEOUT, this.count_all()).await.is_err() {
            tracing::warn!("what is stored is still being counted: until then, owners may store more than they should");
        }
        tokio::spawn(count_changes(Arc::downgrade(&this)));
        tokio::spawn(count_again(Arc::downgrade(&this)));
        this
    }

    /// Counts all tags.
    async fn count_all(&self) {
        let (pass, mut from) = (self.tags().begin(), None);
        loop {
            match self.store.usage(from.as_ref()).await {
                Ok(page) => {
                    let mut tags = self.tags();
                    for usage in &page.tags {
                        tags.set(&usage.tag, usage.bytes, &self.budget, &self.owners);
                    }
                    from = page.next;
                }
                Err(error) => return not_counted(&error),
            }
            if from.is_none() {
                return self.tags().end(pass, &self.budget);
            }
        }
    }

    /// Counts the tags that have changed since they were counted.
    async fn count_changed(&self) {
        let changed = self.tags().take_changed();
        for some in changed.chunks(COUNTED_AT_A_TIME) {
            match self.store.usage_of(some).await {
                Ok(bytes) => {
                    let mut tags = self.tags();
                    for (tag, bytes) in some.iter().zip(bytes) {
                        tags.set(tag, bytes, &self.budget, &self.owners);
                        tags.forget_user(tag, &self.budget);
                    }
                }
                Err(error) => {
                    self.tags().put_back(some);
                    not_counted(&error);
                }
            }
        }
    }

    fn measure_disk(&self) {
        let Some(ReservedDisk { disk, reserve_bytes }) = &self.disk else { return };
        self.put_since.store(0, Ordering::Relaxed);
        match disk.space() {
            Ok(space) => {
                let in_file = space.file_bytes.saturating_sub(self.tags().total().saturating_mul(FILE_FACTOR));
                let reserve = (*reserve_bytes).min(space.total_bytes / RESERVE_PART);
                let room = space.free_bytes.saturating_add(in_file).saturating_sub(reserve);
                self.room.store(room, Ordering::Relaxed);
                gauge!(ROOM).set(room as f64);
            }
            Err(error) => tracing::debug!(%error, "cannot measure the disk of the store"),
        }
    }

    /// Charges the owner of a tag with what a batch puts. If that is too much, what it replaces is subtracted first.
    async fn charge(&self, tag: &str, batch: &Batch) -> Result<u64, Error> {
        let put = batch.put_bytes();
        if self.put_since.fetch_add(put, Ordering::Relaxed).saturating_add(put) >= MEASURED_EVERY_BYTES {
            self.measure_disk();
        }
        if self.take(tag, put).is_ok() {
            return Ok(put);
        }
        let growth = self.store.growth_of(batch).await?;
        match growth {
            0 => Ok(0),
            growth => self.take(tag, growth).map(|()| growth).inspect_err(|_| refused(Resource::StoredBytes)),
        }
    }

    fn take(&self, tag: &str, bytes: u64) -> Result<(), Error> {
        let full = |reason: String| Error::Full { reason };
        self.tags().take(tag, bytes, &self.budget, &self.owners).map_err(|exceeded| full(exceeded.to_string()))?;
        let take_room = |room: u64| room.checked_sub(bytes);
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_room).is_err() {
            self.tags().give_back(tag, bytes, &self.budget);
            return Err(full(NO_ROOM.to_owned()));
        }
        Ok(())
    }

    /// Gives back the charge for a batch that was not stored.
    fn give_back(&self, tag: &str, bytes: u64) {
        self.tags().give_back(tag, bytes, &self.budget);
        let give_back = |room: u64| Some(room.saturating_add(bytes));
        _ = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, give_back);
    }

    fn tags(&self) -> MutexGuard<'_, Tags> {
        // A panic leaves counts behind that are replaced by the next ones.
        self.tags.lock()
    }
}

const NO_ROOM: &str = "the disk of the store has no room but the reserve of the service itself: delete something, or ask \
                       the operator to make room";

fn not_counted(error: &Error) {
    tracing::debug!(error = %ErrorChain(error), "cannot count what is stored: trying again");
}

/// Counts changed tags until nobody uses the store.
async fn count_changes(store: Weak<BudgetedStore>) {
    loop {
        sleep(INTERVAL).await;
        let Some(store) = store.upgrade() else { return };
        store.measure_disk();
        store.count_changed().await;
    }
}

/// Learns to whom everything belongs, and counts all of it, until nobody uses the store.
async fn count_again(store: Weak<BudgetedStore>) {
    let (mut all_at, mut skipped) = (Instant::now() + INTERVAL, 0);
    loop {
        sleep(INTERVAL).await;
        ask_owners(&store, &mut skipped).await;
        let Some(store) = store.upgrade() else { return };
        let started = Instant::now();
        if started >= all_at {
            store.count_all().await;
            all_at = Instant::now() + INTERVAL.max(PAUSE_FACTOR * started.elapsed());
        }
    }
}

/// Asks for the owners of some applications and gateways whose users are not known, after those that it could not learn
/// before. An answer may take seconds, and does not keep the store open.
async fn ask_owners(store: &Weak<BudgetedStore>, skipped: &mut usize) {
    let Some((unknown, owners)) = store.upgrade().and_then(|store| {
        let owners = store.owners.upgrade()?;
        let unknown = store.tags().unknown(*skipped, ASKED_AT_A_TIME);
        // Others have been forgotten since.
        Some((owners.take_missed().into_iter().map(Entity::Application).chain(unknown), owners))
    }) else {
        return;
    };
    let mut unanswered = 0;
    for entity in unknown {
        let user = owners.user_of(&entity).await;
        let Some(store) = store.upgrade() else { return };
        match user {
            Some(user) => store.tags().move_to(&entity, user, &store.budget),
            // The account service does not know it, or cannot be asked.
            None => {
                *skipped = skipped.wrapping_add(1);
                unanswered += 1;
            }
        }
        if unanswered == UNKNOWN_AT_A_TIME {
            return;
        }
    }
}

#[async_trait]
impl Store for BudgetedStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        self.store.get(keys).await
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        self.store.list(prefix, after, limit).await
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        self.store.page(prefix, offset, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        let Some(tag) = batch.tag().map(str::to_owned) else { return self.store.commit(batch).await };
        if !batch.is_growing() {
            let committed = self.store.commit(batch).await;
            self.tags().changed(&tag);
            return committed;
        }
        let charged = self.charge(&tag, &batch).await;
        if charged.is_err() {
            // What was deleted since it was counted makes room.
            self.tags().changed(&tag);
        }
        let charged = charged?;
        let committed = self.store.commit(batch).await;
        match committed {
            Ok(Commit::Conflict) => self.give_back(&tag, charged),
            _ => self.tags().changed(&tag),
        }
        committed
    }

    async fn take_tokens(&self, key: &Key, rate: Rate, wanted: u32) -> Result<TakenTokens, Error> {
        self.store.take_tokens(key, rate, wanted).await
    }

    async fn snapshot(&self) -> Result<Snapshot, Error> {
        self.store.snapshot().await
    }

    async fn usage(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
        self.store.usage(from).await
    }

    async fn usage_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error> {
        self.store.usage_of(tags).await
    }

    async fn check(&self) -> Result<(), Error> {
        self.store.check().await
    }
}
