//! Brings messages to the sessions of their application.

mod adoption;
mod application;
mod applications;
mod behind;
mod fan_out;
mod series;
mod topics;
mod unserved;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream};
use parking_lot::{Mutex, MutexGuard, RwLockReadGuard};
use server::{ledger::Owner, status::ErrorChain};
use tokio::{
    sync::oneshot,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use types::{AppId, Clock, Credential, Timestamp};

pub(crate) use self::application::AttachError;
pub use self::behind::{Recipients, SpareRoom};
use self::{
    application::{Application, Postponed, PublicationRest, PublicationResult},
    applications::Applications,
    fan_out::FanOut,
    series::Series,
    unserved::Unserved,
};
use crate::{
    access::permissions::Permissions,
    session::{
        Attachment, SessionRequest,
        budget::SessionMemory,
        disconnect::{Disconnect, DisconnectReason},
        durable::{Durable, LOADS_MAX, RENEW_INTERVAL},
        message::{Message, Publication},
    },
};

/// Time that a client may wait for its session.
const ATTACH_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of simultaneous requests for owners of applications.
const OWNERS_ASKED_MAX: usize = 16;

/// The sessions of all applications, and who subscribed to what.
///
/// Applications have nothing in common, so a publication costs nobody anything outside its application.
pub struct Router {
    applications: Arc<Applications>,
    fan_out: Arc<FanOut>,
    clock: Arc<dyn Clock>,
    durable: Option<Arc<Durable>>,
    memory: SessionMemory,
    /// The processes that were live when it last looked, whose sessions are not taken over.
    live_processes: Mutex<HashSet<String>>,
    unserved: Unserved,
    series: Mutex<Series>,
    /// Renews this process's lease.
    _lease: Option<AbortOnDropHandle<()>>,
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
    /// Returns true if there is nothing to wait for.
    pub fn is_stored(&self) -> bool {
        self.0.is_none()
    }

    /// For messages that nobody has been promised: they may be lost if the process is killed now.
    pub fn forget(self) {}

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
    /// A router whose sessions end with the process. Each application has a share of its own of what sessions may take.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let memory = SessionMemory::of_applications(Arc::clone(&clock));
        Self::with(None, memory, clock)
    }

    /// The same with other memory, instead of that of [`Router::new`].
    #[must_use]
    pub fn with_memory(self, memory: SessionMemory) -> Self {
        Self { memory, ..self }
    }

    fn with(durable: Option<Arc<Durable>>, memory: SessionMemory, clock: Arc<dyn Clock>) -> Self {
        let applications = Arc::<Applications>::default();
        Self {
            fan_out: Arc::new(FanOut::new(Arc::clone(&applications), durable.clone())),
            applications,
            clock,
            durable,
            memory,
            live_processes: Mutex::default(),
            unserved: Unserved::default(),
            series: Mutex::default(),
            _lease: None,
        }
    }

    /// A router whose sessions are stored, with those that were stored before and that no other process serves.
    pub async fn load(durable: Durable, memory: SessionMemory, clock: Arc<dyn Clock>) -> Result<Self, store::Error> {
        let durable = Arc::new(durable);
        durable.renew_lease().await?;
        let lease = AbortOnDropHandle::new(tokio::spawn(keep_lease(Arc::clone(&durable))));
        let this = Self { _lease: Some(lease), ..Self::with(Some(Arc::clone(&durable)), memory, clock) };
        let live_processes = durable.live_processes().await?;
        let owners = this.adopt(&durable, &live_processes).await?;
        if durable.wait_for_predecessors(&live_processes, &owners).await? {
            this.adopt(&durable, &durable.live_processes().await?).await?;
        }
        this.sweep();
        Ok(this)
    }

    /// Publishes messages of one application, in order. Never waits.
    pub fn publish(&self, app_id: &AppId, publications: impl IntoIterator<Item = Publication>) -> Published {
        self.route(app_id, publications.into_iter().map(Message::from))
    }

    /// Returns true if a client subscribes to any topic below this one, so that such messages are worth making.
    pub fn has_subscribers_below(&self, app_id: &AppId, topic: &str) -> bool {
        self.application(app_id).is_some_and(|application| application.has_subscribers_below(topic))
    }

    /// Publishes a message of one application to those sessions that have room for it behind what is live. Never waits.
    pub fn publish_behind(&self, app_id: &AppId, publication: Publication) -> (Recipients, Published) {
        let Some(application) = self.application(app_id) else { return (Recipients::default(), Published(None)) };
        let durable = self.durable.as_ref();
        let (recipients, saved) = application.publish_behind(durable.map(Arc::as_ref), publication.into());
        if let Some(durable) = durable.filter(|_| saved.is_some()) {
            application.start_saving(durable);
        }
        (recipients, Published(saved))
    }

    /// Returns the room of the sessions that get messages on these topics, behind live messages. A session that
    /// cannot take `at_least` messages has none, unless no session ever has room for so many.
    pub fn spare<'a>(&self, app_id: &AppId, topics: impl Iterator<Item = &'a str>, at_least: usize) -> SpareRoom {
        self.application(app_id).map_or_else(SpareRoom::default, |application| application.spare(topics, at_least))
    }

    pub(crate) fn route(&self, app_id: &AppId, messages: impl IntoIterator<Item = Message>) -> Published {
        let Some(application) = self.application(app_id) else { return Published(None) };
        let durable = self.durable.as_ref();
        let PublicationResult { saved, rest } = application.publish(durable.map(Arc::as_ref), messages.into_iter());
        if application.is_exceeded() {
            self.applications.make_room(&application);
        }
        let saved = rest.map_or(saved, |rest| Some(self.publish_later(&application, rest)));
        if let Some(durable) = durable.filter(|_| saved.is_some()) {
            application.start_saving(durable);
        }
        Published(saved)
    }

    /// Publishes the rest of what goes to many sessions in turn with others. It is refused if it cannot wait.
    fn publish_later(&self, application: &Arc<Application>, rest: PublicationRest) -> oneshot::Receiver<bool> {
        if application.is_exceeded() {
            // Dropping the sender says that it is not saved.
            return oneshot::channel().1;
        }
        let Postponed { saved, is_only } = application.publish_later(rest);
        if is_only {
            self.fan_out.start(Arc::clone(application));
        }
        saved
    }

    /// The owner of an application; asks if that is not known.
    pub(crate) async fn owner_of(&self, app_id: &AppId) -> Owner {
        self.memory.owner_of(app_id).await
    }

    /// Asks for the owners of all applications that have sessions, and charges them.
    pub(crate) async fn charge_owners(&self) {
        let applications: Vec<_> = self.read().iter().map(|(app_id, it)| (app_id.clone(), Arc::clone(it))).collect();
        let charge = |(app_id, application): (AppId, Arc<Application>)| async move {
            self.owner_of(&app_id).await;
            application.settle();
        };
        stream::iter(applications).for_each_concurrent(OWNERS_ASKED_MAX, charge).await;
    }

    /// Gives a client its session.
    pub(crate) async fn attach(
        &self,
        app_id: &AppId,
        request: SessionRequest,
        disconnect: Disconnect,
    ) -> Result<Attachment, AttachError> {
        let (application, now) = (self.entry(app_id), self.clock.now());
        match self.durable.as_ref().filter(|_| request.may_be_stored) {
            None => application.attach(request, disconnect, now),
            Some(durable) => {
                let claiming = self.unserved.claiming(app_id);
                let attached = timeout(ATTACH_WAIT, application.attach_stored(durable, request, disconnect, now));
                attached.await.unwrap_or(Err(AttachError::Late)).inspect(|_| claiming.served())
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Waits until what a client changed about its session is stored, if it is.
    pub(crate) async fn stored(&self, app_id: &AppId, attachment: &Attachment) -> Result<(), NotStored> {
        let Some(durable) = self.durable.as_ref().filter(|_| attachment.session.is_stored()) else {
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

    /// The credentials of clients that are away and whose sessions wait for them.
    pub(crate) fn credentials_of_absent(&self, is_due: impl Fn(&AppId) -> bool) -> HashSet<(AppId, Credential)> {
        let applications = self.read();
        let due = applications.iter().filter(|(app_id, _)| is_due(app_id));
        let credentials = due.flat_map(|(app_id, application)| {
            application.credentials_of_absent().into_iter().map(|credential| (app_id.clone(), credential))
        });
        credentials.collect()
    }

    /// Deletes the sessions of clients that are away and had other rights than `permissions`.
    pub(crate) fn remove_revoked(&self, app_id: &AppId, credential: &Credential, permissions: Option<&Permissions>) {
        self.change(app_id, |application| application.remove_revoked(credential, permissions));
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
        for application in applications.iter().filter(|application| application.has_changes()) {
            application.save_all();
            application.start_saving(durable);
            application.read_again(durable);
        }
    }

    /// Saves everything, at the end.
    pub(crate) async fn save_all(&self) {
        let Some(durable) = &self.durable else { return };
        let applications: Vec<_> = self.read().values().cloned().collect();
        stream::iter(applications)
            .for_each_concurrent(LOADS_MAX, |application| async move {
                self.fan_out.finish(&application);
                application.save_all();
                let saved = application.saved();
                application.start_saving(durable);
                // What could not be saved has been logged.
                _ = saved.await;
            })
            .await;
        if let Err(error) = durable.end_lease().await {
            tracing::warn!(error = %ErrorChain(&error), "other processes will wait before they take over MQTT sessions");
        }
    }

    /// Ends all connections.
    pub(crate) fn end_all(&self, reason: DisconnectReason) {
        let applications: Vec<_> = self.read().values().cloned().collect();
        applications.iter().for_each(|application| application.end_all(reason));
    }

    /// Metrics of single applications, in the text format of Prometheus.
    pub(crate) fn application_metrics(&self) -> String {
        let applications: Vec<_> = self.read().iter().map(|(app_id, it)| (app_id.clone(), Arc::clone(it))).collect();
        // Their locks are not waited for while the series are locked.
        let counts = applications.into_iter().map(|(app_id, application)| (app_id, application.take_counts()));
        let counts: Vec<_> = counts.collect();
        self.series().render(&counts, self.clock.now())
    }

    fn series(&self) -> MutexGuard<'_, Series> {
        // What a panic leaves half counted is only a metric.
        self.series.lock()
    }

    pub(crate) fn application(&self, app_id: &AppId) -> Option<Arc<Application>> {
        self.read().get(app_id).cloned()
    }

    /// The application, which stays as long as somebody has it.
    fn entry(&self, app_id: &AppId) -> Arc<Application> {
        let first_number = self.durable.as_ref().map_or(0, |durable| durable.first_number());
        let new = || Arc::new(Application::new(app_id.clone(), first_number, self.memory.application(app_id)));
        Arc::clone(self.applications.write().entry(app_id.clone()).or_insert_with(new))
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
        if let Some(application) = is_empty.then(|| self.remove_unused(app_id)).flatten() {
            self.series().add(app_id, &application.take_counts(), self.clock.now());
        }
    }

    fn remove_unused(&self, app_id: &AppId) -> Option<Arc<Application>> {
        let mut applications = self.applications.write();
        let is_unused = |it: &Arc<Application>| Arc::strong_count(it) == 1 && it.is_empty();
        applications.get(app_id).is_some_and(is_unused).then(|| applications.remove(app_id)).flatten()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<AppId, Arc<Application>>> {
        self.applications.read()
    }
}

/// Renews the lease of this process, as long as the router exists.
async fn keep_lease(durable: Arc<Durable>) {
    let mut ticks = interval(RENEW_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Without it, others take the sessions over, which costs their clients a reconnection.
        if let Err(error) = durable.renew_lease().await {
            tracing::debug!(error = %ErrorChain(&error), "cannot renew the lease of MQTT sessions");
        }
    }
}

#[cfg(test)]
mod tests;
