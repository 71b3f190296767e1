//! One client's session: its subscriptions and messages, which can outlive the connection.

mod outbox;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;
use types::Timestamp;

pub(crate) use self::outbox::{Outbox, Sending};
use crate::{
    ending::{Cause, Ending},
    message::Delivery,
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
    pub(crate) filters: HashSet<String>,
    /// Packet identifiers of publications with QoS 2 that were accepted and not released.
    pub(crate) unreleased: HashSet<u16>,
    /// How long the session outlives its connection.
    pub(crate) expiry: Duration,
    connection: Presence,
    /// The number of the last connection.
    connections: u64,
}

enum Presence {
    Connected(Ending),
    AwaySince(Timestamp),
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
            filters: HashSet::new(),
            unreleased: HashSet::new(),
            expiry: Duration::ZERO,
            connection: Presence::AwaySince(Timestamp::default()),
            connections: 0,
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
        Attachment { session: Arc::clone(self), connection: state.connections, ending }
    }

    /// Queues a message; the client's task is woken up.
    pub(crate) fn push(&self, delivery: Delivery) {
        let mut state = self.lock();
        let is_wanted = state.is_connected() || delivery.level == crate::message::Level::AtLeastOnce;
        if is_wanted {
            metrics::dropped(state.outbox.push(delivery));
            drop(state);
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
    pub(crate) fn take_filters(&self) -> HashSet<String> {
        std::mem::take(&mut self.lock().filters)
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
            state.outbox.acknowledge(packet_id);
        }
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
        state.outbox.disconnected();
        true
    }
}
