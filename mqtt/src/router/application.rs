//! The sessions of one application, and who subscribed to what.

mod attaching;
mod backlog;
mod log;
mod reading;
mod saving;
mod subscribers;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use types::{AppId, Credential, Timestamp};

pub(crate) use self::attaching::AttachError;
use self::subscribers::Subscribers;
use crate::{
    budget::Budget,
    durable::Durable,
    ending::{Cause, Ending},
    figures::Figures,
    message::{Level, Message},
    permissions::Permissions,
    session::{Attachment, Session, SessionRequest, Subscription},
};

/// Maximum number of subscriptions of a session.
const SUBSCRIPTIONS_MAX: usize = 20;

/// How many sessions can be given to clients at the same time, unless chance makes them wait for each other.
const TURNS: usize = 16;

/// The sessions of one application.
pub(crate) struct Application {
    app_id: AppId,
    subscribers: Mutex<Subscribers>,
    /// One is held while a stored session is attached, which takes several steps: always the same for a session.
    turns: [tokio::sync::Mutex<()>; TURNS],
    /// Held while messages are read from the log.
    reading: tokio::sync::Mutex<()>,
}

impl Application {
    /// An application without sessions; the messages of its log begin with this number.
    pub(super) fn new(app_id: AppId, first_number: u64, budget: Arc<Budget>) -> Self {
        let subscribers = Mutex::new(Subscribers::new(first_number, budget));
        let turns = std::array::from_fn(|_| tokio::sync::Mutex::default());
        Self { app_id, subscribers, turns, reading: tokio::sync::Mutex::default() }
    }

    /// Gives a client its session, which is not stored if it is a new one; returns whether it is an old one.
    pub(super) fn attach(&self, request: SessionRequest, ending: Ending, now: Timestamp) -> (Attachment, bool) {
        let SessionRequest { id, holder, clean, expiry, .. } = request;
        let mut subscribers = self.lock();
        if let Some(session) = subscribers.sessions.get(&id).cloned() {
            if !clean && !session.is_expired(now) {
                return (session.attach(holder, expiry, ending), true);
            }
            session.end(Cause::TakenOver);
            subscribers.remove(&session);
        }
        (subscribers.insert(&self.app_id, id, holder.clone(), now).attach(holder, expiry, ending), false)
    }

    /// Ends a client's use of its session; removes the session if it does not outlive its connection.
    pub(super) fn detach(&self, attachment: &Attachment, now: Timestamp) {
        let mut subscribers = self.lock();
        if attachment.detach(now) && attachment.session.is_expired(now) {
            subscribers.remove(&attachment.session);
        }
    }

    /// Subscribes; returns false if the session has the maximum number of subscriptions.
    pub(crate) fn subscribe(&self, attachment: &Attachment, filter: &str, subscription: Subscription) -> bool {
        let mut subscribers = self.lock();
        // A session that was removed must not come back as a subscriber.
        let is_current = subscribers.is_current(&attachment.session);
        let Some(mut state) = attachment.state().filter(|_| is_current) else { return true };
        if state.filters.len() >= SUBSCRIPTIONS_MAX && !state.filters.contains_key(filter) {
            return false;
        }
        state.subscribed(filter, subscription);
        subscribers.filters.insert(filter, Arc::clone(&attachment.session), subscription);
        true
    }

    /// Unsubscribes; returns false if there was no such subscription.
    pub(crate) fn unsubscribe(&self, attachment: &Attachment, filter: &str) -> bool {
        let mut subscribers = self.lock();
        let Some(mut state) = attachment.state() else { return true };
        subscribers.filters.remove(filter, &attachment.session);
        state.unsubscribed(filter)
    }

    /// Gives messages to all sessions that subscribed to them. One lock for all keeps them in the same order for
    /// every subscriber.
    ///
    /// Returns what resolves when the messages are saved, unless no stored session gets one of them. If too much waits
    /// to be saved, they are refused.
    pub(super) fn publish(
        &self,
        durable: Option<&Durable>,
        messages: impl Iterator<Item = Message>,
    ) -> Option<oneshot::Receiver<bool>> {
        let mut subscribers = self.lock();
        if subscribers.log.is_full() {
            // Dropping the sender says that they are not saved.
            return Some(oneshot::channel().1);
        }
        let first = subscribers.log.next;
        for message in messages {
            let message = Arc::new(message.charged(&subscribers.budget));
            let mut deliveries = subscribers.deliveries(&message);
            if let Some(durable) = durable {
                subscribers.store(&self.app_id, durable, &message, &mut deliveries);
            }
            for (session, delivery) in deliveries {
                if delivery.level == Level::AtLeastOnce {
                    // Only with the earlier ones it is known how many are too many.
                    subscribers.backlog.want(&session);
                }
                session.push(delivery);
            }
            if subscribers.budget.is_exceeded() {
                subscribers.shrink();
            }
        }
        (subscribers.log.next > first).then(|| subscribers.log.saved(first))
    }

    /// Whether a session gets messages on any topic below this one.
    pub(super) fn has_subscribers_below(&self, topic: &str) -> bool {
        self.lock().filters.may_match_below(topic)
    }

    /// How much memory the messages of its sessions take.
    pub(super) fn bytes(&self) -> usize {
        self.lock().budget.used()
    }

    /// Drops messages, because those of all applications take too much memory.
    pub(super) fn shrink(&self) {
        self.lock().shrink();
    }

    /// Resolves when everything is saved that has been done so far.
    pub(super) fn saved(&self) -> oneshot::Receiver<bool> {
        let mut subscribers = self.lock();
        let next = subscribers.log.next;
        subscribers.log.saved(next)
    }

    pub(super) fn remove(&self, session: &Arc<Session>) {
        self.lock().remove(session);
    }

    /// Removes the sessions that have expired.
    pub(super) fn sweep(&self, now: Timestamp) {
        let mut subscribers = self.lock();
        subscribers.sessions.values().for_each(|session| session.refresh(now));
        subscribers.remove_where(|session| session.is_expired(now));
    }

    /// What the clients that are away showed when they connected.
    pub(super) fn credentials_of_absent(&self) -> Vec<Credential> {
        let subscribers = self.lock();
        let absent = subscribers.sessions.values().filter(|session| !session.is_connected());
        absent.filter_map(|session| Some(session.holder().shown?.0)).collect()
    }

    /// Removes the sessions whose clients are away and had other rights than their credential has now.
    pub(super) fn remove_revoked(&self, credential: &Credential, permissions: Option<&Permissions>) {
        self.lock().remove_where(|session| {
            let is_revoked =
                session.holder().shown.is_some_and(|(shown, had)| shown == *credential && Some(&had) != permissions);
            is_revoked && !session.is_connected()
        });
    }

    /// What there is for its clients, and what was counted since this was last called.
    pub(super) fn take_figures(&self) -> Figures {
        let subscribers = self.lock();
        let connections = subscribers.sessions.values().filter(|session| session.is_connected()).count();
        Figures { connections, queued: subscribers.budget.messages(), ..subscribers.counters.take() }
    }

    /// Whether there is something to save, or to read.
    pub(super) fn has_changes(&self) -> bool {
        let subscribers = self.lock();
        let log = &subscribers.log;
        log.is_urgent()
            || log.has_released()
            || subscribers.backlog.is_wanted()
            || !log.removed.is_empty()
            || subscribers.sessions.values().any(|session| session.is_changed())
    }

    /// Has acknowledgements saved too, which may be late.
    pub(super) fn save_all(&self) {
        self.lock().log.saves_all = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        let subscribers = self.lock();
        subscribers.sessions.is_empty() && subscribers.backlog.is_empty() && !subscribers.log.is_saving
    }

    pub(super) fn end_all(&self, cause: Cause) {
        self.lock().sessions.values().for_each(|session| session.end(cause));
    }

    fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().sessions.get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Subscribers> {
        // No panic can leave it half changed.
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Publication, budget::TotalBudget, session::Holder};

    fn attach(application: &Application, id: &str) -> Attachment {
        let request = SessionRequest {
            id: id.into(),
            holder: Holder::default(),
            clean: true,
            expiry: Duration::from_secs(3600),
            may_be_stored: false,
        };
        application.attach(request, Ending::default(), Timestamp::default()).0
    }

    fn publish(application: &Application, topic: &str, count: usize) {
        let publication = || Publication { topic: topic.to_owned(), payload: vec![0; 200_000].into() };
        application.publish(None, (0..count).map(|_| Message::from(publication())));
    }

    /// Each session stays below its own limit, but all together would take 200 MB.
    #[test]
    fn bounds_the_memory_of_an_application_and_of_all() {
        let total = TotalBudget::default();
        let application = Application::new("app-one".parse().unwrap(), 0, total.application());
        let sessions: Vec<_> = (0..10).map(|number| (format!("app-one/{number}"), number)).collect();
        for (topic, number) in &sessions {
            let session = attach(&application, &number.to_string());
            let subscription = Subscription { level: Level::AtLeastOnce, no_local: false, id: None };
            assert!(application.subscribe(&session, topic, subscription));
            application.detach(&session, Timestamp::default());
            publish(&application, topic, 100);
            assert!(application.bytes() <= 64 << 20, "{}", application.bytes());
        }
        // The newest are still there, and nobody is left with nothing.
        let counts: Vec<_> =
            sessions.iter().map(|(_, id)| application.session(&id.to_string()).unwrap().count()).collect();
        assert!(application.bytes() > 48 << 20 && counts.iter().all(|count| *count > 0), "{counts:?}");
        application.shrink();
        assert!(application.bytes() < 56 << 20);
        drop(application);
        assert_eq!(total.application().all_used(), 0);
    }
}
