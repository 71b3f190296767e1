//! Permits of applications to read: one reads with one query at a time, few read at once, and no owner keeps others
//! waiting with many applications.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use types::AppId;

use crate::{Error, OwnerOf};

/// Permits of applications to read. Those that wait are served in the order in which they came, but of each owner only
/// as many wait for others as may read at once.
pub(crate) struct ScanPermits {
    scans_max: usize,
    owner_of: OwnerOf,
    all: Arc<Semaphore>,
    owners: Semaphores<String>,
    applications: Semaphores<AppId>,
}

/// Semaphores that somebody uses or waits for.
type Semaphores<K> = Mutex<HashMap<K, Arc<Semaphore>>>;

/// A permit to read, which ends when it is dropped.
pub(crate) struct ScanPermit {
    _application: OwnedSemaphorePermit,
    _owner: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl ScanPermits {
    pub(crate) fn new(scans_max: usize, owner_of: OwnerOf) -> Self {
        let all = Arc::new(Semaphore::new(scans_max));
        Self { scans_max, owner_of, all, owners: Mutex::default(), applications: Mutex::default() }
    }

    /// Waits until an application may read.
    pub(crate) async fn take(&self, app_id: &AppId) -> Result<ScanPermit, Error> {
        let application = acquire(of(&self.applications, app_id.clone(), 1)).await?;
        let owner = acquire(of(&self.owners, (self.owner_of)(app_id), self.scans_max)).await?;
        let all = acquire(Arc::clone(&self.all)).await?;
        Ok(ScanPermit { _application: application, _owner: owner, _all: all })
    }
}

async fn acquire(semaphore: Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    semaphore.acquire_owned().await.map_err(|_| Error::Stopped)
}

/// The semaphore of a key, with so many permits if nobody uses it yet.
fn of<K: Eq + Hash>(semaphores: &Semaphores<K>, key: K, permits: usize) -> Arc<Semaphore> {
    let mut semaphores = semaphores.lock();
    semaphores.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
    Arc::clone(semaphores.entry(key).or_insert_with(|| Arc::new(Semaphore::new(permits))))
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::BoxFuture};

    use super::*;

    type Waiting<'a> = Option<BoxFuture<'a, Result<ScanPermit, Error>>>;

    /// The places of those that have a permit by now.
    fn have_permits(waiting: &mut [Waiting<'_>], permits: &mut Vec<ScanPermit>) -> Vec<usize> {
        let mut served = Vec::new();
        for (place, future) in waiting.iter_mut().enumerate() {
            if let Some(permit) = future.as_mut().and_then(FutureExt::now_or_never) {
                permits.push(permit.unwrap());
                served.push(place);
                *future = None;
            }
        }
        served
    }

    #[test]
    fn an_owner_with_many_applications_keeps_no_other_waiting_for_all_of_them() {
        let permits = ScanPermits::new(1, Arc::new(|app_id| app_id.as_str()[..1].to_owned()));
        let app_ids = ["a1", "a2", "a3", "b1"].map(|app_id| app_id.parse::<AppId>().unwrap());
        let mut waiting: Vec<_> = app_ids.iter().map(|app_id| Some(permits.take(app_id).boxed())).collect();
        let (mut taken, mut order) = (Vec::new(), Vec::new());
        for _ in 0..8 {
            order.extend(have_permits(&mut waiting, &mut taken));
            taken.clear();
        }
        assert_eq!(order, [0, 3, 1, 2]);
        assert_eq!(permits.all.available_permits(), 1);
    }

    #[test]
    fn an_application_has_one_permit_at_a_time() {
        let permits = ScanPermits::new(2, Arc::new(ToString::to_string));
        let app_id: AppId = "a1".parse().unwrap();
        let first = permits.take(&app_id).now_or_never().unwrap().unwrap();
        let mut second = permits.take(&app_id).boxed();
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        assert!(second.now_or_never().is_some());
    }
}
