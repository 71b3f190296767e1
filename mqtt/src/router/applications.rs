//! The applications that have sessions.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use types::AppId;

use super::application::Application;

/// The applications that have sessions.
#[derive(Default)]
pub(super) struct Applications(pub(super) RwLock<HashMap<AppId, Arc<Application>>>);

impl Applications {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, HashMap<AppId, Arc<Application>>> {
        self.0.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, HashMap<AppId, Arc<Application>>> {
        self.0.write()
    }

    /// Drops messages of an owner that has more memory than its share, until it has not: those of its applications that
    /// have most.
    pub(super) fn make_room(&self, exceeded: &Application) {
        let owner = exceeded.owner();
        while exceeded.is_exceeded() {
            let applications = self.read();
            let own = applications.values().filter(|application| application.owner() == owner);
            let largest = own.max_by_key(|application| application.bytes()).cloned();
            drop(applications);
            if !largest.is_some_and(|largest| largest.shrink()) && !exceeded.shrink() {
                return;
            }
            exceeded.settle();
        }
    }
}
