//! Brings messages to the sessions of their application.

pub(crate) mod application;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::oneshot;
use types::{AppId, Clock};

use self::application::Application;
use crate::{
    durable::Durable,
    ending::{Cause, Ending},
    message::{Message, Publication},
    session::{Attachment, SessionRequest},
};

/// How many applications are loaded at the same time.
const LOADS_MAX: usize = 16;

/// The sessions of all applications, and who subscribed to what.
///
/// Applications have nothing in common, so a publication costs nobody anything outside its application.
pub struct Router {
    applications: RwLock<HashMap<AppId, Arc<Application>>>,
    clock: Arc<dyn Clock>,
    durable: Option<Arc<Durable>>,
}

/// Publications that have been queued for their subscribers.
#[derive(Debug)]
#[must_use = "messages may be lost until they are stored"]
pub struct Published(Option<oneshot::Receiver<bool>>);

/// Messages could not be stored for sessions that outlive the process. They may reach their subscribers nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("messages could not be stored for the sessions of MQTT clients")]
pub struct NotStored;

impl Published {
    /// Whether there is nothing to wait for.
    pub fn is_stored(&self) -> bool {
        self.0.is_none()
    }

    /// Waits until the messages are stored for all sessions that outlive the process; at once if there are none.
    pub async fn stored(self) -> Result<(), NotStored> {
        match self.0 {
            None => Ok(()),
            Some(saved) => {
                if saved.await == Ok(true) {
                    Ok(())
                } else {
                    Err(NotStored)
                }
            }
        }
    }
}

impl Router {
    /// A router whose sessions end with the process.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { applications: RwLock::default(), clock, durable: None }
    }

    /// A router whose sessions are stored, with those that were stored before.
    pub async fn load(durable: Durable, clock: Arc<dyn Clock>) -> Result<Self, store::Error> {
        let app_ids = durable.applications().await?;
        let this = Self { durable: Some(Arc::new(durable)), ..Self::new(clock) };
        stream::iter(app_ids)
            .map(Ok)
            .try_for_each_concurrent(LOADS_MAX, |app_id| this.load_application(app_id))
            .await?;
        this.sweep();
        Ok(this)
    }

    async fn load_application(&self, app_id: AppId) -> Result<(), store::Error> {
        let Some(durable) = &self.durable else { return Ok(()) };
        self.entry(&app_id).load(durable, self.clock.now()).await
    }

    /// Publishes messages of one application, in order. Never waits.
    pub fn publish(&self, app_id: &AppId, publications: impl IntoIterator<Item = Publication>) -> Published {
        self.route(app_id, publications.into_iter().map(Message::from))
    }

    pub(crate) fn route(&self, app_id: &AppId, messages: impl IntoIterator<Item = Message>) -> Published {
        let Some(application) = self.application(app_id) else { return Published(None) };
        let durable = self.durable.as_ref();
        let saved = application.publish(durable.map(Arc::as_ref), messages.into_iter().map(Arc::new));
        if let Some(durable) = durable.filter(|_| saved.is_some()) {
            application.start_saving(durable);
        }
        Published(saved)
    }

    /// Gives a client its session; returns whether it is an old one.
    pub(crate) async fn attach(
        &self,
        app_id: &AppId,
        request: SessionRequest,
        ending: Ending,
    ) -> Result<(Attachment, bool), store::Error> {
        let (application, now) = (self.entry(app_id), self.clock.now());
        match self.durable.as_ref().filter(|_| !request.expiry.is_zero()) {
            None => Ok(application.attach(request, ending, now)),
            Some(durable) => application.attach_stored(durable, request, ending, now).await,
        }
    }

    /// Waits until what a client changed about its session is stored, if it is.
    pub(crate) async fn stored(&self, app_id: &AppId, attachment: &Attachment) -> Result<(), NotStored> {
        let Some(durable) = self.durable.as_ref().filter(|_| attachment.session.owner().is_some()) else {
            return Ok(());
        };
        let Some(application) = self.application(app_id) else { return Ok(()) };
        let saved = application.saved();
        application.start_saving(durable);
        Published(Some(saved)).stored().await
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

    /// Saves what nobody waits for, such as acknowledgements.
    pub(crate) fn save_changes(&self) {
        let Some(durable) = &self.durable else { return };
        let applications: Vec<_> = self.read().values().cloned().collect();
        applications.iter().filter(|it| it.has_changes()).for_each(|application| application.start_saving(durable));
    }

    /// Saves everything, at the end.
    pub(crate) async fn save_all(&self) {
        let Some(durable) = &self.durable else { return };
        let applications: Vec<_> = self.read().values().cloned().collect();
        stream::iter(applications)
            .for_each_concurrent(LOADS_MAX, |application| async move {
                let saved = application.saved();
                application.start_saving(durable);
                // What could not be saved has been logged.
                _ = saved.await;
            })
            .await;
    }

    /// Ends all connections.
    pub(crate) fn end_all(&self, cause: Cause) {
        let applications: Vec<_> = self.read().values().cloned().collect();
        applications.iter().for_each(|application| application.end_all(cause));
    }

    pub(crate) fn application(&self, app_id: &AppId) -> Option<Arc<Application>> {
        self.read().get(app_id).cloned()
    }

    /// The application, which stays as long as somebody has it.
    fn entry(&self, app_id: &AppId) -> Arc<Application> {
        let first_number = self.durable.as_ref().map_or(0, |durable| durable.first_number());
        let new = || Arc::new(Application::new(app_id.clone(), first_number));
        Arc::clone(self.write().entry(app_id.clone()).or_insert_with(new))
    }

    /// Changes the sessions of an application, and forgets it with the last of them.
    fn change(&self, app_id: &AppId, change: impl FnOnce(&Application)) {
        let Some(application) = self.application(app_id) else { return };
        change(&application);
        if let Some(durable) = self.durable.as_ref().filter(|_| application.has_changes()) {
            application.start_saving(durable);
        }
        let is_empty = application.is_empty();
        drop(application);
        if is_empty {
            let mut applications = self.write();
            let is_unused = |it: &Arc<Application>| Arc::strong_count(it) == 1 && it.is_empty();
            if applications.get(app_id).is_some_and(is_unused) {
                applications.remove(app_id);
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<AppId, Arc<Application>>> {
        // No panic can leave the map half changed.
        self.applications.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<AppId, Arc<Application>>> {
        self.applications.write().unwrap_or_else(PoisonError::into_inner)
    }
}
