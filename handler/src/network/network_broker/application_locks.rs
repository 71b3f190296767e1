//! Changes of the devices of an application in the network servers, one after the other.
//!
//! A network broker of v2 takes five such calls per second from each user. Of calls made at once, the same ones could
//! be refused each time they are repeated. And what a device was before must not change until it is replaced.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex as SyncMutex;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};
use types::AppId;

use crate::Error;

/// Time that a change waits for earlier ones, which is about as long as clients wait for theirs.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Time that a join waits for them. The device listens five or six seconds after its request, and then repeats it.
const JOIN_WAIT_MAX: Duration = Duration::from_secs(2);

/// Changes of devices in progress, by application. There are as many entries as applications whose devices are being
/// changed.
#[derive(Default)]
pub struct ApplicationLocks(SyncMutex<HashMap<AppId, Weak<Mutex<()>>>>);

/// Nobody else in this process changes devices of the application until it is dropped.
#[must_use]
pub(crate) struct ApplicationLock {
    _guard: OwnedMutexGuard<()>,
}

impl ApplicationLocks {
    /// Waits until the changes before this one are done; [`Error::NetworkBrokersBusy`] if that takes too long.
    pub(super) async fn wait(&self, app_id: &AppId) -> Result<ApplicationLock, Error> {
        self.wait_within(app_id, WAIT_MAX).await
    }

    /// The same for a join, which cannot wait for long.
    pub(super) async fn wait_briefly(&self, app_id: &AppId) -> Result<ApplicationLock, Error> {
        self.wait_within(app_id, JOIN_WAIT_MAX).await
    }

    async fn wait_within(&self, app_id: &AppId, wait_max: Duration) -> Result<ApplicationLock, Error> {
        let waiting = self.of(app_id).lock_owned();
        let guard = timeout(wait_max, waiting).await.map_err(|_| Error::NetworkBrokersBusy)?;
        Ok(ApplicationLock { _guard: guard })
    }

    /// Returns the lock that the changes of an application share. It lives as long as one of them does.
    fn of(&self, app_id: &AppId) -> Arc<Mutex<()>> {
        // Each change is complete when the lock is released, so a panic elsewhere cannot leave it half made.
        let mut applications = self.0.lock();
        if let Some(application) = applications.get(app_id).and_then(Weak::upgrade) {
            return application;
        }
        applications.retain(|_, application| application.strong_count() > 0);
        let application = Arc::default();
        applications.insert(app_id.clone(), Arc::downgrade(&application));
        application
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> AppId {
        format!("app-{number}").parse().unwrap()
    }

    // Conformance: A call beyond the broker's rate limit, five per second, is repeated
    #[tokio::test(start_paused = true)]
    async fn a_change_waits_for_those_of_the_same_application() {
        let (locks, app_id) = (ApplicationLocks::default(), id(1));
        let first = locks.wait(&app_id).await.unwrap();
        let (second, ()) = tokio::join!(locks.wait(&app_id), async { drop(first) });
        assert!(matches!(locks.wait(&app_id).await, Err(Error::NetworkBrokersBusy)), "10 s later");
        drop(second.unwrap());
        drop(locks.wait(&app_id).await.unwrap());
    }

    // Conformance: A call beyond the broker's rate limit, five per second, is repeated
    #[tokio::test(start_paused = true)]
    async fn changes_of_other_applications_do_not_wait() {
        let locks = ApplicationLocks::default();
        let mut held = Vec::new();
        for number in 0..1000 {
            held.push(locks.wait(&id(number)).await.unwrap());
        }
        held.clear();
        drop(locks.wait(&id(1000)).await.unwrap());
        assert_eq!(locks.0.lock().len(), 1, "those that are done are forgotten");
    }

    // Conformance: A call beyond the broker's rate limit, five per second, is repeated
    #[tokio::test(start_paused = true)]
    async fn a_join_gives_up_earlier() {
        let (locks, app_id) = (ApplicationLocks::default(), id(1));
        let first = locks.wait(&app_id).await.unwrap();
        let joining = async {
            assert!(matches!(locks.wait_briefly(&app_id).await, Err(Error::NetworkBrokersBusy)));
            drop(first);
        };
        let (patient, ()) = tokio::join!(locks.wait(&app_id), joining);
        drop(patient.unwrap());
        drop(locks.wait_briefly(&app_id).await.unwrap());
    }
}
