//! Turns of applications: one reads with one query at a time, and few read at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use types::AppId;

use crate::Error;

/// Turns of applications. Those that wait are served in the order in which they came.
pub(crate) struct Turns {
    all: Arc<Semaphore>,
    applications: Mutex<HashMap<AppId, Arc<Semaphore>>>,
}

/// A turn, which ends when it is dropped.
pub(crate) struct Turn {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Turns {
    pub(crate) fn new(scans_max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(scans_max)), applications: Mutex::default() }
    }

    /// Waits for the turn of an application.
    pub(crate) async fn take(&self, app_id: &AppId) -> Result<Turn, Error> {
        let own = self.of(app_id).acquire_owned().await.map_err(|_| Error::Stopped)?;
        let all = Arc::clone(&self.all).acquire_owned().await.map_err(|_| Error::Stopped)?;
        Ok(Turn { _own: own, _all: all })
    }

    fn of(&self, app_id: &AppId) -> Arc<Semaphore> {
        let mut applications = self.applications.lock().unwrap_or_else(PoisonError::into_inner);
        // Only those that somebody uses or waits for are kept.
        applications.retain(|_, turns| Arc::strong_count(turns) > 1);
        Arc::clone(applications.entry(app_id.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}
