//! The right to deliver to a destination, so that of several processes with one store only one does.

use std::{sync::Arc, time::Duration};

use store::{Batch, Commit, Key, Store, Version};
use tokio::{sync::Mutex, time::sleep};
use tokio_util::task::AbortOnDropHandle;
use types::Clock;

use crate::{Error, destination::Destination};

/// How long a lease counts that is not renewed, because its process was killed.
const LEASE: Duration = Duration::from_secs(10);
const RENEW_INTERVAL: Duration = Duration::from_secs(3);

/// Takes leases.
pub(crate) struct Leases {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether other processes use the store. If not, nothing is leased.
    pub(crate) is_shared: bool,
    /// Differs for each process.
    pub(crate) process: String,
}

/// A lease, renewed until it is dropped.
pub(crate) struct Lease {
    held: Option<(Arc<Held>, AbortOnDropHandle<()>)>,
}

struct Held {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    key: Key,
    process: String,
    /// The version of its record; none when it is lost.
    version: Mutex<Option<Version>>,
}

impl Leases {
    /// Takes the lease of a destination; none if another process has it.
    pub(crate) async fn take(&self, destination: &Destination) -> Result<Option<Lease>, Error> {
        if !self.is_shared {
            return Ok(Some(Lease { held: None }));
        }
        let held = Arc::new(Held {
            store: self.store.clone(),
            clock: self.clock.clone(),
            key: destination.lease()?,
            process: self.process.clone(),
            version: Mutex::new(None),
        });
        if !held.write(Batch::new().expect_absent(held.key.clone())).await? {
            return Ok(None);
        }
        let renewing = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&held).keep()));
        Ok(Some(Lease { held: Some((held, renewing)) }))
    }
}

impl Held {
    /// Writes the record, and reads the version that it has then. Returns false after a conflict.
    async fn write(&self, expected: Batch) -> Result<bool, Error> {
        let mut version = self.version.lock().await;
        *version = None;
        let end = self.clock.now().plus(LEASE).as_millis();
        let put = expected.put_until(self.key.clone(), self.process.clone(), u64::try_from(end).unwrap_or_default());
        if self.store.commit(put).await? == Commit::Conflict {
            return Ok(false);
        }
        let [entry] = self.store.get_array(std::array::from_ref(&self.key)).await?;
        *version = entry.filter(|entry| entry.value == self.process.as_bytes()).map(|entry| entry.version);
        Ok(version.is_some())
    }

    /// Renews the lease until it is lost. While the store cannot be used, nothing is delivered either.
    async fn keep(self: Arc<Self>) {
        loop {
            sleep(RENEW_INTERVAL).await;
            let Some(version) = *self.version.lock().await else { return };
            if !matches!(self.write(Batch::new().expect(self.key.clone(), version)).await, Ok(true)) {
                return;
            }
        }
    }
}

impl Lease {
    /// Commits something for as long as the lease is held, with the version that its record has then; none if it is
    /// lost.
    pub(crate) async fn hold<T>(&self, work: impl AsyncFnOnce(Option<Version>) -> T) -> Option<T> {
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

    /// Whether another process may have it.
    pub(crate) async fn is_lost(&self) -> bool {
        match &self.held {
            None => false,
            Some((held, _)) => held.version.lock().await.is_none(),
        }
    }

    /// Leaves the destination to others.
    pub(crate) async fn release(self) {
        let Some((held, renewing)) = self.held else { return };
        drop(renewing);
        if let Some(version) = held.version.lock().await.take() {
            // If this fails, others wait until it ends.
            _ = held.store.commit(Batch::new().expect(held.key.clone(), version).delete(held.key.clone())).await;
        }
    }
}
