//! The sessions of one application, and who subscribed to what.

mod attaching;
mod backlog;
mod log;
mod pending;
mod reading;
mod saving;
mod subscribers;

use std::{collections::VecDeque, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use server::ledger::Owner;
use tokio::sync::oneshot;
use types::{AppId, Credential, Timestamp};

pub(crate) use self::attaching::AttachError;
pub(super) use self::pending::PublicationRest;
use self::subscribers::Subscribers;
use crate::{
    access::permissions::Permissions,
    metrics::counters::Counts,
    router::behind::{Recipients, SpareRoom},
    session::{
        Attachment, Session, SessionRequest, Subscription,
        budget::ApplicationMemory,
        disconnect::{Disconnect, DisconnectReason},
        durable::Durable,
        message::Message,
    },
};

/// Maximum number of subscriptions of a session.
const SUBSCRIPTIONS_MAX: usize = 20;

/// Maximum number of deliveries made at once: a part of a millisecond's work. More would keep others waiting.
const PART_DELIVERIES_MAX: usize = 256;

/// Number of locks for attaching stored sessions. Sessions that share one by chance wait for each other.
const ATTACH_LOCKS: usize = 16;

/// The sessions of one application.
pub(crate) struct Application {
    app_id: AppId,
    memory: Arc<ApplicationMemory>,
    subscribers: Mutex<Subscribers>,
    /// One is held while a stored session is attached, which takes several steps: always the same for a session.
    attach_locks: [tokio::sync::Mutex<()>; ATTACH_LOCKS],
    /// Held while messages are read from the log.
    reading: tokio::sync::Mutex<()>,
}

/// The rest of a publication, and when it is stored.
pub(super) struct PublicationResult {
    /// Resolves when its messages are saved; none if no stored session gets one of them.
    pub(super) saved: Option<oneshot::Receiver<bool>>,
    /// Messages that have to wait for their turn.
    pub(super) rest: Option<PublicationRest>,
}

/// A publication that waits for its turn with the messages that are left.
pub(super) struct Postponed {
    /// Resolves when its messages are saved.
    pub(super) saved: oneshot::Receiver<bool>,
    /// True if no other one waits.
    pub(super) is_only: bool,
}

/// Part of a publication that was brought to its sessions at once.
pub(super) struct DeliveredPart {
    /// Number of deliveries.
    pub(super) cost: usize,
    pub(super) has_more: bool,
}

impl Application {
    /// An application without sessions; the messages of its log begin with this number.
    pub(super) fn new(app_id: AppId, first_number: u64, memory: Arc<ApplicationMemory>) -> Self {
        let subscribers = Mutex::new(Subscribers::new(first_number, Arc::clone(&memory)));
        let attach_locks = std::array::from_fn(|_| tokio::sync::Mutex::default());
        Self { app_id, memory, subscribers, attach_locks, reading: tokio::sync::Mutex::default() }
    }

    /// Gives a client its session, which is not stored if it is a new one.
    pub(super) fn attach(
        &self,
        request: SessionRequest,
        disconnect: Disconnect,
        now: Timestamp,
    ) -> Result<Attachment, AttachError> {
        let SessionRequest { id, session_owner, clean, expiry, .. } = request;
        let mut subscribers = self.lock();
        if let Some(session) = subscribers.sessions.get(&id).cloned() {
            if !clean && !session.is_expired(now) {
                return Ok(session.attach(session_owner, expiry, disconnect, true));
            }
            session.end(DisconnectReason::TakenOver);
            subscribers.remove(&session);
        }
        let memory = subscribers.reserve_memory(&session_owner)?;
        let session = subscribers.insert(&self.app_id, id, (session_owner.clone(), memory), now);
        Ok(session.attach(session_owner, expiry, disconnect, false))
    }

    /// Ends a client's use of its session; removes the session if it does not outlive its connection.
    pub(super) fn detach(&self, attachment: &Attachment, now: Timestamp) {
        let mut subscribers = self.lock();
        if attachment.detach(now) && attachment.session.is_expired(now) {
            subscribers.remove(&attachment.session);
        }
    }

    /// Subscribes; returns false if the session has the maximum number of subscriptions, or the owner of the
    /// application has more memory than its share.
    pub(crate) fn subscribe(&self, attachment: &Attachment, filter: &str, subscription: Subscription) -> bool {
        let mut subscribers = self.lock();
        // A session that was removed must not come back as a subscriber.
        let is_current = subscribers.is_current(&attachment.session);
        let Some(mut state) = attachment.state().filter(|_| is_current) else { return true };
        if state.filters.len() >= SUBSCRIPTIONS_MAX && !state.filters.contains_key(filter) {
            return false;
        }
        if state.subscribed(filter, subscription).is_err() {
            return false;
        }
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

    /// Delivers messages to all sessions that subscribed to them, or as many as can be delivered at once. One lock for
    /// all keeps them in the same order for every subscriber.
    ///
    /// If too much waits already, they are refused.
    pub(super) fn publish(
        &self,
        durable: Option<&Durable>,
        mut messages: impl Iterator<Item = Message>,
    ) -> PublicationResult {
        let mut subscribers = self.lock();
        if subscribers.is_overloaded() {
            // Dropping the sender says that they are not saved.
            return PublicationResult { saved: Some(oneshot::channel().1), rest: None };
        }
        let first = subscribers.log.next;
        let mut room = if subscribers.pending.is_empty() { PART_DELIVERIES_MAX } else { 0 };
        while room > 0
            && let Some(message) = messages.next()
        {
            room = room.saturating_sub(subscribers.deliver(&self.app_id, durable, message));
            if self.memory.is_exceeded() {
                room = 0;
            }
        }
        let messages: VecDeque<_> = messages.map(|message| message.counted(&self.memory)).collect();
        if !messages.is_empty() {
            return PublicationResult { saved: None, rest: Some(PublicationRest { first, messages }) };
        }
        PublicationResult { saved: (subscribers.log.next > first).then(|| subscribers.log.saved(first)), rest: None }
    }

    /// Delivers a message to the sessions that have room for it behind what is live; returns also what resolves when it is
    /// saved, unless no stored session gets it.
    pub(super) fn publish_behind(
        &self,
        durable: Option<&Durable>,
        message: Message,
    ) -> (Recipients, Option<oneshot::Receiver<bool>>) {
        let mut subscribers = self.lock();
        let first = subscribers.log.next;
        let recipients = subscribers.deliver_behind(&self.app_id, durable, message);
        (recipients, (subscribers.log.next > first).then(|| subscribers.log.saved(first)))
    }

    /// Returns the room of the sessions that get messages on these topics, behind live messages.
    pub(super) fn spare<'a>(&self, topics: impl Iterator<Item = &'a str>, at_least: usize) -> SpareRoom {
        self.lock().spare(topics, at_least)
    }

    /// Leaves the rest of a publication to [`Application::publish_more`].
    pub(super) fn publish_later(&self, rest: PublicationRest) -> Postponed {
        let mut subscribers = self.lock();
        let (is_only, sessions) = (subscribers.pending.is_empty(), subscribers.sessions.len());
        Postponed { saved: subscribers.pending.push(rest, sessions), is_only }
    }

    /// Goes on with what waits, as much as can be done at once.
    pub(super) fn publish_more(&self, durable: Option<&Durable>) -> DeliveredPart {
        let mut subscribers = self.lock();
        let mut cost = 0;
        while cost < PART_DELIVERIES_MAX
            && let Some(message) = subscribers.pending.next()
        {
            cost += subscribers.deliver(&self.app_id, durable, message);
            while let Some((first, saved)) = subscribers.pending.finished() {
                if subscribers.log.next > first {
                    subscribers.log.notify_when_saved(first, saved);
                } else {
                    _ = saved.send(true);
                }
            }
            if self.memory.is_exceeded() {
                break;
            }
        }
        DeliveredPart { cost, has_more: !subscribers.pending.is_empty() }
    }

    /// Returns true if a session gets messages on any topic below this one.
    pub(super) fn has_subscribers_below(&self, topic: &str) -> bool {
        self.lock().filters.may_match_below(topic)
    }

    /// Returns the memory of its sessions in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.memory.used()
    }

    /// Returns its owner, as far as it is known.
    pub(super) fn owner(&self) -> Owner {
        self.memory.owner()
    }

    /// Returns true if its owner has more memory than its share.
    pub(super) fn is_exceeded(&self) -> bool {
        self.memory.is_exceeded()
    }

    /// Charges its owner with what it has, as far as the share allows.
    pub(super) fn settle(&self) {
        // Whether it does shows in `is_exceeded`.
        _ = self.memory.settle();
    }

    /// Drops messages, because its owner has more memory than its share; returns whether there were any.
    pub(super) fn shrink(&self) -> bool {
        self.lock().shrink()
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

    /// Returns the credentials of the clients that are away, as they showed them when they connected.
    pub(super) fn credentials_of_absent(&self) -> Vec<Credential> {
        let subscribers = self.lock();
        let absent = subscribers.sessions.values().filter(|session| !session.is_connected());
        absent.filter_map(|session| Some(session.session_owner().presented?.0)).collect()
    }

    /// Removes the sessions whose clients are away and had other rights than their credential has now.
    pub(super) fn remove_revoked(&self, credential: &Credential, permissions: Option<&Permissions>) {
        self.lock().remove_where(|session| {
            let is_revoked = session
                .session_owner()
                .presented
                .is_some_and(|(presented, had)| presented == *credential && Some(&had) != permissions);
            is_revoked && !session.is_connected()
        });
    }

    /// Returns the current connections and queue length, and the counts since the last call.
    pub(super) fn take_counts(&self) -> Counts {
        let subscribers = self.lock();
        let connections = subscribers.sessions.values().filter(|session| session.is_connected()).count();
        Counts { connections, queued: self.memory.messages(), ..subscribers.counters.take() }
    }

    /// Returns true if there is something to save, or to read.
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
        subscribers.sessions.is_empty()
            && subscribers.backlog.is_empty()
            && subscribers.pending.is_empty()
            && !subscribers.log.is_saving
    }

    pub(super) fn end_all(&self, reason: DisconnectReason) {
        self.lock().sessions.values().for_each(|session| session.end(reason));
    }

    fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().sessions.get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Subscribers> {
        self.subscribers.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use server::ledger::{Budget, Limits, Owners, Resource};
    use testing::ManualClock;

    use super::*;
    use crate::{Publication, session::SessionOwner, session::budget::SessionMemory, session::message::DeliveryQos};

    /// Memory of the only owner, in bytes.
    const SHARE: u64 = 64 << 20;

    fn memory() -> (SessionMemory, Arc<Budget>) {
        let limits = Limits { total: 2 * SHARE, owner_max: SHARE, owner_min: 0 };
        let budget = Arc::new(Budget::new(Resource::QueuedBytes, limits));
        (SessionMemory::new(Arc::clone(&budget), Arc::new(Owners::unknown(ManualClock::new()))), budget)
    }

    fn attach(application: &Application, id: &str) -> Attachment {
        let request = SessionRequest {
            id: id.into(),
            session_owner: SessionOwner::default(),
            clean: true,
            expiry: Duration::from_secs(3600),
            may_be_stored: false,
        };
        application.attach(request, Disconnect::default(), Timestamp::default()).unwrap()
    }

    fn publish(application: &Application, topic: &str) {
        let publication = Publication { topic: topic.to_owned(), payload: vec![0; 200_000].into() };
        application.publish(None, std::iter::once(Message::from(publication)));
        if application.is_exceeded() {
            application.shrink();
        }
    }

    /// Each session stays below its own limit, but all together would take 200 MB.
    #[test]
    fn bounds_the_memory_of_an_application() {
        let (memory, budget) = memory();
        let app_id = "app-one".parse().unwrap();
        let application = Application::new(app_id, 0, memory.application(&"app-one".parse().unwrap()));
        let sessions: Vec<_> = (0..10).map(|number| (format!("app-one/{number}"), number)).collect();
        for (topic, number) in &sessions {
            let session = attach(&application, &number.to_string());
            let subscription = Subscription { qos: DeliveryQos::AtLeastOnce, no_local: false, id: None };
            assert!(application.subscribe(&session, topic, subscription));
            application.detach(&session, Timestamp::default());
            for _ in 0..100 {
                publish(&application, topic);
            }
            assert!(application.bytes() as u64 <= budget.used() && budget.used() <= SHARE, "{}", application.bytes());
        }
        // The newest are still there, and nobody is left with nothing.
        let counts: Vec<_> =
            sessions.iter().map(|(_, id)| application.session(&id.to_string()).unwrap().count()).collect();
        assert!(application.bytes() > 48 << 20 && counts.iter().all(|count| *count > 0), "{counts:?}");
        application.shrink();
        assert!(application.bytes() < 56 << 20);
        drop(application);
        assert_eq!(budget.used(), 0);
    }
}
