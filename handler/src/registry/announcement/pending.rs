//! Announcements of applications that the discovery service has not received yet.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use types::{AppId, Credential};

const APPLICATIONS_MAX: usize = 10_000;

/// The latest announcement of each application.
#[derive(Default)]
pub(super) struct PendingAnnouncements {
    announcements: Mutex<HashMap<AppId, PendingAnnouncement>>,
    added: Notify,
}

/// An application was registered or deleted.
pub(super) struct PendingAnnouncement {
    /// The credential of the client that registered or deleted it; none if the handler completed a deletion.
    pub(super) credential: Option<Credential>,
    pub(super) is_registered: bool,
    /// Dropped when the announcement was sent, or never will be.
    _done: oneshot::Sender<()>,
}

impl PendingAnnouncements {
    /// Adds an announcement, in place of an older one for the same application; none if there are too many.
    ///
    /// The receiver ends when the announcement was sent.
    pub(super) fn add(
        &self,
        app_id: &AppId,
        credential: Option<Credential>,
        is_registered: bool,
    ) -> Option<oneshot::Receiver<()>> {
        let (done, receiver) = oneshot::channel();
        let mut announcements = self.announcements.lock();
        if announcements.len() >= APPLICATIONS_MAX && !announcements.contains_key(app_id) {
            return None;
        }
        announcements.insert(app_id.clone(), PendingAnnouncement { credential, is_registered, _done: done });
        self.added.notify_one();
        Some(receiver)
    }

    pub(super) async fn added(&self) {
        self.added.notified().await;
    }

    /// Takes the announcement of some application.
    pub(super) fn take(&self) -> Option<(AppId, PendingAnnouncement)> {
        let mut announcements = self.announcements.lock();
        let app_id = announcements.keys().next()?.clone();
        announcements.remove_entry(&app_id)
    }

    /// Puts back an announcement that could not be sent, unless there is a newer one.
    pub(super) fn put_back(&self, app_id: AppId, announcement: PendingAnnouncement) {
        self.announcements.lock().entry(app_id).or_insert(announcement);
    }
}
