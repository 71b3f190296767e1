//! The right to do something that only one of the processes with one store may do at a time.

use std::{future::pending, sync::Arc, time::Duration};

use store::{Batch, Commit, Error, Key, Store, Version};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use types::Clock;

/// Time after which a lease that is not renewed ends, because its process was killed.
const LEASE: Duration = Duration::from_secs(10);
const RENEW_INTERVAL: Duration = Duration::from_secs(3);
/// Maximum duration of a renewal. Together with the interval it ends before the lease does.
const RENEW_MAX: Duration = Duration::from_secs(4);

/// Takes leases.
pub struct Leases {
    /// The store with their records.
    pub store: Arc<dyn Store>,
    /// The time of their ends.
    pub clock: Arc<dyn Clock>,
    /// True if other processes use the store. If not, nothing is leased.
    pub is_shared: bool,
    /// Differs for each process.
    pub process: String,
}

/// A lease, renewed until it is dropped.
pub struct Lease {
    held: Option<(Arc<LeaseState>, AbortOnDropHandle<()>)>,
}

struct LeaseState {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    key: Key,
    process: String,
    /// The version of its record; `None` when it is lost.
    version: Mutex<Option<Version>>,
    /// Cancelled when it is lost.
    lost: CancellationToken,
}

impl Leases {
    /// Acquires the lease with that record; `None` if another process has it.
    pub async fn acquire(&self, key: Key) -> Result<Option<Lease>, Error> {
        if !self.is_shared {
            return Ok(Some(Lease { held: None }));
        }
        let held = Arc::new(LeaseState {
            store: self.store.clone(),
            clock: self.clock.clone(),
            key,
            process: self.process.clone(),
            version: Mutex::new(None),
            lost: CancellationToken::new(),
        });
        if !held.write(Batch::new().expect_absent(held.key.clone())).await? {
            return Ok(None);
        }
        let renewing = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&held).keep()));
        Ok(Some(Lease { held: Some((held, renewing)) }))
    }
}

impl LeaseState {
    /// Writes the record, and reads the version that it has then. Returns false after a conflict.
    async fn write(&self, expected: Batch) -> Result<bool, Error> {
        let mut version = self.version.lock().await;
        *version = None;
        let end = self.clock.now().plus(LEASE).as_unix_ms();
        let put = expected.put_until(self.key.clone(), self.process.clone(), end);
        if self.store.commit(put).await? == Commit::Conflict {
            return Ok(false);
        }
        let entry = self.store.get_one(&self.key).await?;
        *version = entry.filter(|entry| entry.value == self.process.as_bytes()).map(|entry| entry.version);
        Ok(version.is_some())
    }

    /// Renews the lease until it is lost. Without a store, its holder could do nothing either.
    async fn keep(self: Arc<Self>) {
        let _lost = self.lost.clone().drop_guard();
        loop {
            sleep(RENEW_INTERVAL).await;
            let Some(version) = *self.version.lock().await else { return };
            let renewing = self.write(Batch::new().expect(self.key.clone(), version));
            if !matches!(timeout(RENEW_MAX, renewing).await, Ok(Ok(true))) {
                return;
            }
        }
    }
}

impl Lease {
    /// Commits something for as long as the lease is held, with the version that its record has then; `None` if it is
    /// lost.
    pub async fn hold<T>(&self, work: impl AsyncFnOnce(Option<Version>) -> T) -> Option<T> {
        match &self.held {
            None => Some(work(None).await),
            Some((held, _)) => {
                let version = held.version.lock().await;
                match *version {
                    None => None,
                    version => Some(work(version).await),
                }
            }
        }
    }

    /// Returns true if another process may have the lease.
    pub async fn is_lost(&self) -> bool {
        match &self.held {
            None => false,
            Some((held, _)) => held.version.lock().await.is_none(),
        }
    }

    /// Waits until another process may have it.
    pub async fn lost(&self) {
        match &self.held {
            None => pending().await,
            Some((held, _)) => held.lost.cancelled().await,
        }
    }

    /// Leaves it to others.
    pub async fn release(self) {
        let Some((held, renewing)) = self.held else { return };
        drop(renewing);
        if let Some(version) = held.version.lock().await.take() {
            // If this fails, others wait until it ends.
            _ = held.store.commit(Batch::new().expect(held.key.clone(), version).delete(held.key.clone())).await;
        }
    }
}
