//! What the discovery service has yet to be told about applications.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, oneshot};
use types::{AppId, Credential};

/// The most applications of which there may be news at once.
const APPLICATIONS_MAX: usize = 10_000;

/// The last news of each application.
#[derive(Default)]
pub(super) struct News {
    items: Mutex<HashMap<AppId, Item>>,
    arrived: Notify,
}

/// That an application came or went.
pub(super) struct Item {
    /// Of who has the right to say so.
    pub(super) credential: Credential,
    pub(super) is_here: bool,
    /// Dropped when it is said, or will never be.
    _said: oneshot::Sender<()>,
}

impl News {
    /// Adds what is new about an application, in place of what was; gives what ends when it was said.
    ///
    /// None when there is too much already.
    pub(super) fn add(&self, app_id: &AppId, credential: Credential, is_here: bool) -> Option<oneshot::Receiver<()>> {
        let (said, receiver) = oneshot::channel();
        let mut items = self.items();
        if items.len() >= APPLICATIONS_MAX && !items.contains_key(app_id) {
            return None;
        }
        items.insert(app_id.clone(), Item { credential, is_here, _said: said });
        self.arrived.notify_one();
        Some(receiver)
    }

    /// Waits until there is something new.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Takes the news of some application.
    pub(super) fn take(&self) -> Option<(AppId, Item)> {
        let mut items = self.items();
        let app_id = items.keys().next()?.clone();
        items.remove_entry(&app_id)
    }

    /// Gives back what could not be said, unless there is newer news of that application.
    pub(super) fn give_back(&self, app_id: AppId, item: Item) {
        self.items().entry(app_id).or_insert(item);
    }

    fn items(&self) -> MutexGuard<'_, HashMap<AppId, Item>> {
        // Whoever panicked here left the map whole: every change to it is one call.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
