//! The sessions of one application, and who subscribed to what.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use types::Timestamp;

use crate::{
    ending::{Cause, Ending},
    message::{Delivery, Level, Message},
    session::{Attachment, Session, SessionRequest},
    topics::Filters,
};

/// Maximum number of subscriptions of a session.
const SUBSCRIPTIONS_MAX: usize = 20;

/// The sessions of one application.
#[derive(Default)]
pub(crate) struct Application(Mutex<Subscribers>);

#[derive(Default)]
struct Subscribers {
    sessions: HashMap<Arc<str>, Arc<Session>>,
    filters: Filters<Arc<Session>, Subscription>,
    last_number: u64,
}

/// The options of a subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscription {
    pub(crate) level: Level,
    /// Whether the client does not want what it publishes itself.
    pub(crate) no_local: bool,
    /// The client's own number for it.
    pub(crate) id: Option<u32>,
}

impl Application {
    /// Gives a client its session; returns whether it is an old one.
    pub(super) fn attach(&self, request: SessionRequest, ending: Ending, now: Timestamp) -> (Attachment, bool) {
        let SessionRequest { id, clean, expiry } = request;
        let mut subscribers = self.lock();
        if let Some(session) = subscribers.sessions.get(&id).cloned() {
            if !clean && !session.is_expired(now) {
                return (session.attach(expiry, ending), true);
            }
            session.end(Cause::TakenOver);
            subscribers.remove(&session);
        }
        subscribers.last_number += 1;
        let session = Arc::new(Session::new(subscribers.last_number, Arc::clone(&id)));
        subscribers.sessions.insert(id, Arc::clone(&session));
        (session.attach(expiry, ending), false)
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
        let is_current = subscribers.sessions.get(&attachment.session.id) == Some(&attachment.session);
        let Some(mut state) = attachment.state().filter(|_| is_current) else { return true };
        if state.filters.len() >= SUBSCRIPTIONS_MAX && !state.filters.contains(filter) {
            return false;
        }
        state.filters.insert(filter.to_owned());
        subscribers.filters.insert(filter, Arc::clone(&attachment.session), subscription);
        true
    }

    /// Unsubscribes; returns false if there was no such subscription.
    pub(crate) fn unsubscribe(&self, attachment: &Attachment, filter: &str) -> bool {
        let mut subscribers = self.lock();
        let Some(mut state) = attachment.state() else { return true };
        subscribers.filters.remove(filter, &attachment.session);
        state.filters.remove(filter)
    }

    /// Gives messages to all sessions that subscribed to them. One lock for all keeps them in the same order for
    /// every subscriber.
    pub(super) fn publish(&self, messages: impl Iterator<Item = Arc<Message>>) {
        let mut subscribers = self.lock();
        for message in messages {
            for (session, delivery) in subscribers.deliveries(&message) {
                session.push(delivery);
            }
        }
    }

    pub(super) fn remove(&self, session: &Arc<Session>) {
        self.lock().remove(session);
    }

    /// Removes the sessions that have expired.
    pub(super) fn sweep(&self, now: Timestamp) {
        let mut subscribers = self.lock();
        let expired: Vec<_> =
            subscribers.sessions.values().filter(|session| session.is_expired(now)).cloned().collect();
        expired.iter().for_each(|session| subscribers.remove(session));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().sessions.is_empty()
    }

    pub(super) fn end_all(&self, cause: Cause) {
        self.lock().sessions.values().for_each(|session| session.end(cause));
    }

    fn lock(&self) -> MutexGuard<'_, Subscribers> {
        // No panic can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscribers {
    fn remove(&mut self, session: &Arc<Session>) {
        if self.sessions.get(&session.id) == Some(session) {
            self.sessions.remove(&session.id);
        }
        for filter in session.take_filters() {
            self.filters.remove(&filter, session);
        }
    }

    /// What each session gets: a message that several of its filters match only once, with the highest QoS.
    fn deliveries(&mut self, message: &Arc<Message>) -> Vec<(Arc<Session>, Delivery)> {
        let mut deliveries: Vec<(Arc<Session>, Delivery)> = Vec::new();
        let mut add = |session: &Arc<Session>, subscription: &Subscription| {
            if subscription.no_local && message.publisher == Some(session.number) {
                return;
            }
            let level = subscription.level.min(message.level);
            let known = deliveries.iter_mut().find(|(other, _)| other == session);
            match known {
                Some((_, delivery)) => {
                    delivery.level = delivery.level.max(level);
                    delivery.subscription_ids.extend(subscription.id);
                }
                None => {
                    let subscription_ids = subscription.id.into_iter().collect();
                    let delivery = Delivery { message: Arc::clone(message), level, subscription_ids };
                    deliveries.push((Arc::clone(session), delivery));
                }
            }
        };
        self.filters.for_each_match(&message.topic, |session| session.is_connected(), &mut add);
        deliveries
    }
}
