//! One client's session: its subscriptions and messages, which can outlive the connection.

mod outbox;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use store::Version;
use tokio::sync::Notify;
use types::Timestamp;

pub(crate) use self::outbox::{Outbox, Sending};
use crate::{
    durable::{SessionRecord, SubscriptionRecord},
    ending::{Cause, Ending},
    message::{Delivery, Level},
    metrics,
};

/// How many publications with QoS 2 a client may have begun without releasing them.
const UNRELEASED_MAX: usize = 100;

/// A session, connected or not.
pub(crate) struct Session {
    /// Unique in this process.
    pub(crate) number: u64,
    /// Unique in its application.
    pub(crate) id: Arc<str>,
    state: Mutex<State>,
    changed: Notify,
}

pub(crate) struct State {
    pub(crate) outbox: Outbox,
    /// As they were narrowed.
    pub(crate) filters: HashMap<String, Subscription>,
    /// Packet identifiers of publications with QoS 2 that were accepted and not released.
    pub(crate) unreleased: HashSet<u16>,
    /// How long the session outlives its connection.
    pub(crate) expiry: Duration,
    connection: Presence,
    /// The number of the last connection.
    connections: u64,
    /// The version of the record that makes this instance the session's owner; none if it is not stored.
    owner: Option<Version>,
    /// Whether its stored record is out of date.
    is_changed: bool,
    /// How many messages were dropped that the client has not been told about.
    dropped: u64,
}

enum Presence {
    Connected(Ending),
    AwaySince(Timestamp),
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

/// How a client wants its session.
pub(crate) struct SessionRequest {
    pub(crate) id: Arc<str>,
    /// Whether what there is of it is to be deleted first.
    pub(crate) clean: bool,
    /// How long it outlives the connection.
    pub(crate) expiry: Duration,
}

/// The right of one connection to use a session, until another takes it over.
pub(crate) struct Attachment {
    pub(crate) session: Arc<Session>,
    connection: u64,
    pub(crate) ending: Ending,
}

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Session {
    pub(crate) fn new(number: u64, id: Arc<str>) -> Self {
        let state = State {
            outbox: Outbox::default(),
            filters: HashMap::new(),
            unreleased: HashSet::new(),
            expiry: Duration::ZERO,
            connection: Presence::AwaySince(Timestamp::default()),
            connections: 0,
            owner: None,
            is_changed: false,
            dropped: 0,
        };
        Self { number, id, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Gives the session to a new connection, and ends the one that it had.
    pub(crate) fn attach(self: &Arc<Self>, expiry: Duration, ending: Ending) -> Attachment {
        let mut state = self.lock();
        if let Presence::Connected(other) =
            std::mem::replace(&mut state.connection, Presence::Connected(ending.clone()))
        {
            other.end(Cause::TakenOver);
        }
        state.outbox.disconnected();
        state.connections += 1;
        state.expiry = expiry;
        state.is_changed = true;
        Attachment { session: Arc::clone(self), connection: state.connections, ending }
    }

    /// Queues a message; the client's task is woken up.
    pub(crate) fn push(&self, delivery: Delivery) {
        let mut state = self.lock();
        if state.is_connected() || delivery.level == Level::AtLeastOnce {
            let dropped = state.outbox.push(delivery);
            state.dropped += dropped;
            state.is_changed |= dropped > 0;
            drop(state);
            metrics::dropped(dropped);
            self.changed.notify_one();
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.lock().is_connected()
    }

    /// Whether the session is over at `now`.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        let state = self.lock();
        matches!(state.connection, Presence::AwaySince(since) if now.since(since) >= state.expiry)
    }

    /// The filters of a session that is removed.
    pub(crate) fn take_filters(&self) -> HashMap<String, Subscription> {
        std::mem::take(&mut self.lock().filters)
    }

    /// The version of the record that makes this instance the owner; none if the session is not stored.
    pub(crate) fn owner(&self) -> Option<Version> {
        self.lock().owner
    }

    /// Whether its stored record is out of date.
    pub(crate) fn is_changed(&self) -> bool {
        let state = self.lock();
        state.is_changed && state.owner.is_some()
    }

    /// Since when its client is away; none while it is connected.
    pub(crate) fn away_since(&self) -> Option<Timestamp> {
        match self.lock().connection {
            Presence::Connected(_) => None,
            Presence::AwaySince(since) => Some(since),
        }
    }

    /// Lets go of all messages.
    pub(crate) fn clear(&self) {
        self.lock().outbox = Outbox::default();
    }

    pub(crate) fn mark_changed(&self) {
        self.lock().is_changed = true;
    }

    /// Stores the session from now on.
    pub(crate) fn own(&self, owner: Version) {
        let mut state = self.lock();
        (state.owner, state.is_changed) = (Some(owner), true);
    }

    /// Leaves the session to its new owner: what it has is in the log, and its client is there.
    pub(crate) fn disown(&self) {
        let mut state = self.lock();
        state.owner = None;
        state.outbox.disown();
    }

    /// The record to be stored, if it has changed. `next` is the number of the next message of the log.
    pub(crate) fn take_record(&self, next: u64) -> Option<SessionRecord> {
        let mut state = self.lock();
        let is_changed = std::mem::take(&mut state.is_changed) && state.owner.is_some();
        is_changed.then(|| state.record(next))
    }

    /// Puts back what was stored of the session.
    pub(crate) fn restore(&self, record: &SessionRecord, now: Timestamp) {
        let mut state = self.lock();
        state.expiry = Duration::from_millis(record.expiry_ms);
        // Until this process started, the client of a session that was connected had no chance to come back.
        let since =
            record.away_since_ms.map_or(now, |ms| Timestamp::from_millis(i64::try_from(ms).unwrap_or(i64::MAX)));
        state.connection = Presence::AwaySince(since);
        state.dropped = record.dropped;
        let level = |qos| if qos == 0 { Level::AtMostOnce } else { Level::AtLeastOnce };
        let filters = record.filters.iter().map(|(filter, SubscriptionRecord { qos, no_local, id })| {
            (filter.clone(), Subscription { level: level(*qos), no_local: *no_local, id: *id })
        });
        state.filters = filters.collect();
    }

    /// A copy of the subscriptions.
    pub(crate) fn filters(&self) -> HashMap<String, Subscription> {
        self.lock().filters.clone()
    }

    /// Ends the connection that the session has.
    pub(crate) fn end(&self, cause: Cause) {
        if let Presence::Connected(ending) = &self.lock().connection {
            ending.end(cause);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No panic can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_connected(&self) -> bool {
        matches!(self.connection, Presence::Connected(_))
    }

    pub(crate) fn subscribed(&mut self, filter: &str, subscription: Subscription) {
        self.filters.insert(filter.to_owned(), subscription);
        self.is_changed = true;
    }

    /// Returns false if there was no such subscription.
    pub(crate) fn unsubscribed(&mut self, filter: &str) -> bool {
        self.is_changed = true;
        self.filters.remove(filter).is_some()
    }

    fn record(&self, next: u64) -> SessionRecord {
        let (in_flight, waiting) = self.outbox.logged();
        let filters = self.filters.iter().map(|(filter, Subscription { level, no_local, id })| {
            (filter.clone(), SubscriptionRecord { qos: *level as u8, no_local: *no_local, id: *id })
        });
        SessionRecord {
            filters: filters.collect(),
            expiry_ms: u64::try_from(self.expiry.as_millis()).unwrap_or(u64::MAX),
            away_since_ms: match self.connection {
                Presence::Connected(_) => None,
                Presence::AwaySince(since) => Some(u64::try_from(since.as_millis()).unwrap_or_default()),
            },
            in_flight,
            waiting_from: waiting.unwrap_or(next),
            dropped: self.dropped,
        }
    }
}

impl Attachment {
    /// The session's state, unless another connection has it now.
    pub(crate) fn state(&self) -> Option<MutexGuard<'_, State>> {
        Some(self.session.lock()).filter(|state| state.connections == self.connection)
    }

    /// Waits until there may be more to send.
    pub(crate) async fn changed(&self) {
        self.session.changed.notified().await;
    }

    /// Takes the next message, if the client has acknowledged all but `window - 1`.
    pub(crate) fn next(&self, window: usize) -> Option<Sending> {
        self.state()?.outbox.next(window)
    }

    pub(crate) fn acknowledge(&self, packet_id: u16) {
        if let Some(mut state) = self.state() {
            state.is_changed |= state.outbox.acknowledge(packet_id);
        }
    }

    /// How many messages a stored session dropped, once its client has caught up far enough to be told.
    pub(crate) fn take_dropped(&self) -> Option<u64> {
        let mut state = self.state()?;
        if state.dropped == 0 || state.owner.is_none() || state.outbox.is_more_than_half_full() {
            return None;
        }
        state.is_changed = true;
        Some(std::mem::take(&mut state.dropped))
    }

    /// Whether a publication with QoS 2 was accepted before, under this identifier.
    pub(crate) fn is_unreleased(&self, packet_id: u16) -> bool {
        self.state().is_some_and(|state| state.unreleased.contains(&packet_id))
    }

    /// Whether the client may begin another publication with QoS 2.
    pub(crate) fn may_begin(&self) -> bool {
        self.state().is_some_and(|state| state.unreleased.len() < UNRELEASED_MAX)
    }

    pub(crate) fn begin(&self, packet_id: u16) {
        self.state().map(|mut state| state.unreleased.insert(packet_id));
    }

    /// Returns false if there was no such publication.
    pub(crate) fn release(&self, packet_id: u16) -> bool {
        self.state().is_some_and(|mut state| state.unreleased.remove(&packet_id))
    }

    /// Gives the session back at the end of the connection; returns false if another connection has it.
    pub(crate) fn detach(&self, now: Timestamp) -> bool {
        let Some(mut state) = self.state() else { return false };
        state.connection = Presence::AwaySince(now);
        state.is_changed = true;
        state.outbox.disconnected();
        true
    }
}
