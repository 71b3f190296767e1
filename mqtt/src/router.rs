//! Brings messages to the sessions of their application.

pub(crate) mod application;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use types::{AppId, Clock};

use self::application::Application;
use crate::{
    ending::{Cause, Ending},
    message::{Message, Publication},
    session::{Attachment, SessionRequest},
};

/// The sessions of all applications, and who subscribed to what.
///
/// Applications have nothing in common, so a publication costs nobody anything outside its application.
pub struct Router {
    applications: RwLock<HashMap<AppId, Arc<Application>>>,
    clock: Arc<dyn Clock>,
}

impl Router {
    /// A router without sessions.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { applications: RwLock::default(), clock }
    }

    /// Publishes messages of one application, in order. Never waits.
    pub fn publish(&self, app_id: &AppId, publications: impl IntoIterator<Item = Publication>) {
        self.route(app_id, publications.into_iter().map(Message::from));
    }

    pub(crate) fn route(&self, app_id: &AppId, messages: impl IntoIterator<Item = Message>) {
        let Some(application) = self.read().get(app_id).cloned() else { return };
        application.publish(messages.into_iter().map(Arc::new));
    }

    /// Gives a client its session; returns whether it is an old one.
    pub(crate) fn attach(&self, app_id: &AppId, request: SessionRequest, ending: Ending) -> (Attachment, bool) {
        // Under this lock no application without sessions is removed.
        let mut applications = self.write();
        applications.entry(app_id.clone()).or_default().attach(request, ending, self.clock.now())
    }

    /// Ends a client's use of its session, which stays until it expires.
    pub(crate) fn detach(&self, app_id: &AppId, attachment: &Attachment) {
        let now = self.clock.now();
        self.change(app_id, |application| application.detach(attachment, now));
    }

    /// Deletes a session.
    pub(crate) fn remove(&self, app_id: &AppId, attachment: &Attachment) {
        self.change(app_id, |application| application.remove(&attachment.session));
    }

    /// Deletes the sessions that have expired.
    pub(crate) fn sweep(&self) {
        let now = self.clock.now();
        let app_ids: Vec<_> = self.read().keys().cloned().collect();
        for app_id in app_ids {
            self.change(&app_id, |application| application.sweep(now));
        }
    }

    /// Ends all connections.
    pub(crate) fn end_all(&self, cause: Cause) {
        let applications: Vec<_> = self.read().values().cloned().collect();
        applications.iter().for_each(|application| application.end_all(cause));
    }

    /// Changes the sessions of an application, and forgets it with the last of them.
    fn change(&self, app_id: &AppId, change: impl FnOnce(&Application)) {
        let Some(application) = self.application(app_id) else { return };
        change(&application);
        if application.is_empty() {
            let mut applications = self.write();
            if applications.get(app_id).is_some_and(|application| application.is_empty()) {
                applications.remove(app_id);
            }
        }
    }

    pub(crate) fn application(&self, app_id: &AppId) -> Option<Arc<Application>> {
        self.read().get(app_id).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<AppId, Arc<Application>>> {
        // No panic can leave the map half changed.
        self.applications.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<AppId, Arc<Application>>> {
        self.applications.write().unwrap_or_else(PoisonError::into_inner)
    }
}
