//! One client's session: its subscriptions and messages, which can outlive the connection.

mod attachment;
pub(crate) mod budget;
pub(crate) mod disconnect;
pub(crate) mod durable;
pub(crate) mod message;
mod outbox;
pub(crate) mod ownership;
mod stored;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use server::ledger::Exceeded;
use tokio::sync::Notify;
use types::{Credential, Timestamp};

pub(crate) use self::{
    attachment::Attachment,
    outbox::{Outbox, SPARE_MAX, Sending},
};
use self::{
    budget::SessionBytes,
    disconnect::{Disconnect, DisconnectReason},
    durable::SessionRecord,
    message::{Delivery, DeliveryQos},
    ownership::Ownership,
};
use crate::{access::permissions::Permissions, metrics::counters::Counters};

/// Age at which the stored record of a connected client's session is written again, before it would expire.
const RECORD_AGE_MAX: Duration = Duration::from_secs(6 * 3600);

/// About how much memory a session takes, without its subscriptions and messages.
const SESSION_BYTES: usize = 2048;

/// About how much memory a subscription takes, and each level of its filter, which may be a table of its own.
const SUBSCRIPTION_BYTES: usize = 256;
const LEVEL_BYTES: usize = 640;

/// A session, connected or not.
pub(crate) struct Session {
    /// Unique in this process.
    pub(crate) number: u64,
    /// Unique in its application.
    pub(crate) id: Arc<str>,
    pub(crate) ownership: Arc<Ownership>,
    /// Counters of its application.
    pub(crate) counters: Arc<Counters>,
    state: Mutex<SessionState>,
    changed: Notify,
}

pub(crate) struct SessionState {
    pub(crate) outbox: Outbox,
    /// Subscriptions by filter, as narrowed to the application.
    pub(crate) filters: HashMap<String, Subscription>,
    /// Packet identifiers of publications with QoS 2 that were accepted and not released.
    pub(crate) unreleased: HashSet<u16>,
    /// Time that the session outlives its connection.
    pub(crate) expiry: Duration,
    connection: Presence,
    /// The number of the last connection.
    connections: u64,
    session_owner: SessionOwner,
    /// Stored record, as long as the messages from before the restart are not in memory.
    backlog: Option<Arc<SessionRecord>>,
    /// True if the stored record must be written with the next commit.
    is_changed: bool,
    /// True if the stored record lags behind the client's acknowledgements, which it may for a while.
    is_behind: bool,
    /// Time when its record was last taken to be stored.
    stored_at: Timestamp,
    generation: Option<String>,
    /// Number of dropped messages that the client has not been told about.
    dropped: u64,
    /// Memory of the session besides its messages.
    memory: SessionBytes,
    /// Bytes of `memory` that the queue takes.
    queue_bytes: usize,
}

enum Presence {
    Connected(Disconnect),
    AwaySince(Timestamp),
}

/// The options of a subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscription {
    pub(crate) qos: DeliveryQos,
    /// True if the client does not want its own publications.
    pub(crate) no_local: bool,
    /// The client's own number for it.
    pub(crate) id: Option<u32>,
}

/// The credential to which a session belongs: only a client that presents it may resume the session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionOwner {
    /// Stands for the credential, and says nothing about it.
    pub(crate) name: Arc<str>,
    /// Credential and rights that the client presented last; none since the process was restarted.
    pub(crate) presented: Option<(Credential, Permissions)>,
}

/// Contents of a session, in the order in which a session without them is given up first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Contents {
    subscriptions: bool,
    messages: bool,
    /// True if it may have messages, none of which is in memory.
    backlog: bool,
}

/// Session that a client asks for.
pub(crate) struct SessionRequest {
    pub(crate) id: Arc<str>,
    pub(crate) session_owner: SessionOwner,
    /// True if an existing session is to be deleted first.
    pub(crate) clean: bool,
    /// Time that it outlives the connection.
    pub(crate) expiry: Duration,
    /// True if the client may read: a session of one that only publishes is never stored.
    pub(crate) may_be_stored: bool,
}

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Session {
    /// A session without subscriptions and messages, for which `memory` was taken.
    pub(crate) fn new(
        number: u64,
        id: Arc<str>,
        session_owner: SessionOwner,
        counters: Arc<Counters>,
        memory: SessionBytes,
    ) -> Self {
        let state = SessionState {
            outbox: Outbox::default(),
            filters: HashMap::new(),
            unreleased: HashSet::new(),
            expiry: Duration::ZERO,
            connection: Presence::AwaySince(Timestamp::default()),
            connections: 0,
            session_owner,
            backlog: None,
            is_changed: false,
            is_behind: false,
            stored_at: Timestamp::default(),
            generation: None,
            dropped: 0,
            memory,
            queue_bytes: 0,
        };
        let ownership = Arc::new(Ownership::new(Arc::clone(&id)));
        Self { number, id, ownership, counters, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Gives the session to a new connection, and ends the one that it had.
    pub(crate) fn attach(
        self: &Arc<Self>,
        session_owner: SessionOwner,
        expiry: Duration,
        disconnect: Disconnect,
        session_present: bool,
    ) -> Attachment {
        let mut state = self.lock();
        state.session_owner = session_owner;
        if let Presence::Connected(other) =
            std::mem::replace(&mut state.connection, Presence::Connected(disconnect.clone()))
        {
            other.end(DisconnectReason::TakenOver);
        }
        state.outbox.disconnected();
        state.connections += 1;
        state.expiry = expiry;
        state.is_changed = true;
        Attachment { session: Arc::clone(self), connection: state.connections, disconnect, session_present }
    }

    /// Queues a message; the client's task is woken up.
    pub(crate) fn push(&self, delivery: Delivery) {
        let mut state = self.lock();
        if state.is_connected() || delivery.qos == DeliveryQos::AtLeastOnce {
            let dropped = state.outbox.push(delivery);
            state.count_queue();
            state.count_dropped(dropped);
            drop(state);
            self.counters.dropped(dropped);
            self.changed.notify_one();
        }
    }

    /// Returns the numbers of messages and of bytes that may be added behind live messages: zero as long as its
    /// backlog has not been read.
    pub(crate) fn spare(&self) -> (usize, usize) {
        let state = self.lock();
        if state.backlog.is_some() { (0, 0) } else { state.outbox.spare() }
    }

    /// Drops the message that it would drop if its queue were full; returns false if none waits.
    pub(crate) fn drop_one(&self) -> bool {
        let mut state = self.lock();
        let is_dropped = state.outbox.drop_one();
        state.count_queue();
        state.count_dropped(u64::from(is_dropped));
        self.counters.dropped(u64::from(is_dropped));
        is_dropped
    }

    /// About how much memory its messages take.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().outbox.bytes()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.lock().is_connected()
    }

    /// Returns true if the session has expired at `now`.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        let state = self.lock();
        matches!(state.connection, Presence::AwaySince(since) if now.since(since) >= state.expiry)
    }

    /// The filters of a session that is removed.
    pub(crate) fn take_filters(&self) -> HashMap<String, Subscription> {
        let mut state = self.lock();
        let filters = std::mem::take(&mut state.filters);
        state.memory.shrink(filters.keys().map(|filter| subscription_bytes(filter)).sum());
        filters
    }

    /// Returns true if it is stored, so that it outlives the process.
    pub(crate) fn is_stored(&self) -> bool {
        self.ownership.version().is_some()
    }

    /// Returns true if its stored record is out of date, even if that may be so for a while.
    pub(crate) fn is_changed(&self) -> bool {
        let state = self.lock();
        (state.is_changed || state.is_behind) && self.is_stored()
    }

    /// Has its record written again before it expires, while its client is connected.
    pub(crate) fn refresh(&self, now: Timestamp) {
        let mut state = self.lock();
        state.is_behind |= state.is_connected() && now.since(state.stored_at) >= RECORD_AGE_MAX;
    }

    /// Queues a message that the client got under this packet identifier before the process was restarted.
    pub(crate) fn restore_in_flight(&self, packet_id: u16, delivery: Delivery) {
        self.lock().outbox.restore_in_flight(packet_id, delivery);
    }

    /// Stands for the credential that it belongs to.
    pub(crate) fn owner_name(&self) -> Arc<str> {
        Arc::clone(&self.lock().session_owner.name)
    }

    pub(crate) fn session_owner(&self) -> SessionOwner {
        self.lock().session_owner.clone()
    }

    pub(crate) fn contents(&self) -> Contents {
        let state = self.lock();
        let messages = state.outbox.len() > 0;
        Contents { subscriptions: !state.filters.is_empty(), messages, backlog: !messages && state.backlog.is_some() }
    }

    /// Returns the time when its client left; none while it is connected.
    pub(crate) fn away_since(&self) -> Option<Timestamp> {
        match self.lock().connection {
            Presence::Connected(_) => None,
            Presence::AwaySince(since) => Some(since),
        }
    }

    /// Lets go of all messages.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        let outbox = std::mem::take(&mut state.outbox);
        state.count_queue();
        drop(state);
        // Without the lock.
        drop(outbox);
    }

    /// Returns the number of messages that it has.
    pub(crate) fn count(&self) -> u64 {
        u64::try_from(self.lock().outbox.len()).unwrap_or_default()
    }

    /// Calls `each` for every message that its client must get, in order.
    pub(crate) fn with_reliable(&self, each: impl FnMut(&mut Delivery)) {
        self.lock().outbox.reliable().for_each(each);
    }

    pub(crate) fn mark_changed(&self) {
        self.lock().is_changed = true;
    }

    /// A copy of the subscriptions.
    pub(crate) fn filters(&self) -> HashMap<String, Subscription> {
        self.lock().filters.clone()
    }

    /// Ends the connection that the session has.
    pub(crate) fn end(&self, reason: DisconnectReason) {
        if let Presence::Connected(disconnect) = &self.lock().connection {
            disconnect.end(reason);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock()
    }
}

impl SessionState {
    fn is_connected(&self) -> bool {
        matches!(self.connection, Presence::Connected(_))
    }

    /// Counts dropped messages. The first drop is saved at once, the number a little later.
    fn count_dropped(&mut self, dropped: u64) {
        self.is_changed |= dropped > 0 && self.dropped == 0;
        self.is_behind |= dropped > 0;
        self.dropped += dropped;
    }

    /// An error if the owner of the application would have more memory than its share.
    pub(crate) fn subscribed(&mut self, filter: &str, subscription: Subscription) -> Result<(), Exceeded> {
        if !self.filters.contains_key(filter) {
            self.memory.grow(subscription_bytes(filter))?;
        }
        self.filters.insert(filter.to_owned(), subscription);
        self.is_changed = true;
        Ok(())
    }

    /// Returns false if there was no such subscription.
    pub(crate) fn unsubscribed(&mut self, filter: &str) -> bool {
        self.is_changed = true;
        let is_removed = self.filters.remove(filter).is_some();
        self.memory.shrink(if is_removed { subscription_bytes(filter) } else { 0 });
        is_removed
    }

    /// Counts what the queue takes, whether or not something is in it.
    fn count_queue(&mut self) {
        let before = std::mem::replace(&mut self.queue_bytes, self.outbox.capacity_bytes());
        if self.queue_bytes > before {
            self.memory.add(self.queue_bytes - before);
        } else if self.queue_bytes < before {
            self.memory.shrink(before - self.queue_bytes);
        }
    }
}

impl SessionOwner {
    /// About how much memory a session of this owner takes, without its subscriptions and messages.
    pub(crate) fn session_bytes(&self) -> usize {
        SESSION_BYTES + self.presented.as_ref().map_or(0, |(credential, _)| credential.to_header().len())
    }
}

/// About how much memory a subscription takes, in its session and in the tree.
fn subscription_bytes(filter: &str) -> usize {
    SUBSCRIPTION_BYTES + 3 * filter.len() + filter.split('/').count() * LEVEL_BYTES
}
