//! The applications of which this process may own sessions that it does not have in memory.

use std::collections::HashSet;

use parking_lot::Mutex;
use types::AppId;

/// Applications of which a claim failed halfway: the store may name this process as the owner of a session of theirs
/// that nobody serves.
#[derive(Default)]
pub(super) struct Unserved(Mutex<HashSet<AppId>>);

/// Sessions of an application that are being claimed. They count as unserved if this is dropped before they are served,
/// also because a client no longer waits for them.
#[must_use]
pub(super) struct Claiming<'a> {
    unserved: &'a Unserved,
    app_id: AppId,
    is_served: bool,
}

impl Unserved {
    /// Says that sessions of an application are going to be claimed.
    pub(super) fn claiming(&self, app_id: &AppId) -> Claiming<'_> {
        Claiming { unserved: self, app_id: app_id.clone(), is_served: false }
    }

    /// Takes all applications, to try again.
    pub(super) fn take(&self) -> Vec<Claiming<'_>> {
        let app_ids = std::mem::take(&mut *self.0.lock());
        app_ids.iter().map(|app_id| self.claiming(app_id)).collect()
    }
}

impl Claiming<'_> {
    pub(super) fn app_id(&self) -> &AppId {
        &self.app_id
    }

    /// Marks the claimed application as loaded.
    pub(super) fn served(mut self) {
        self.is_served = true;
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        if !self.is_served {
            self.unserved.0.lock().insert(self.app_id.clone());
        }
    }
}
