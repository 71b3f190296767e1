//! The sessions of one application as they are in memory, with their filters and what is to be saved.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use server::ledger::Exceeded;
use types::{AppId, Timestamp};

use super::{
    backlog::Backlog,
    log::{Append, Log},
    pending::Pending,
};
use crate::{
    metrics::counters::Counters,
    router::{
        behind::{Recipients, SpareRoom},
        topics::Filters,
    },
    session::{
        SPARE_MAX, Session, SessionOwner, Subscription,
        budget::{ApplicationMemory, SessionBytes},
        disconnect::DisconnectReason,
        durable::{Durable, LogRecord},
        message::{Delivery, DeliveryQos, Message, named_levels},
        ownership::Ownership,
    },
};

/// Number of sessions of an application from which each new one removes one whose client is away.
const SESSIONS_MAX: usize = 200;

/// Maximum number of stored sessions of an application. A commit has a condition and a record for each. The few that
/// become stored at the same time may exceed it.
const STORED_MAX: usize = 400;

/// Cost of giving a message to its subscribers, in deliveries, besides the deliveries themselves.
const MESSAGE_COST: usize = 4;

/// Minimum interval between warnings that an application has too many sessions.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

pub(super) struct Subscribers {
    pub(super) sessions: HashMap<Arc<str>, Arc<Session>>,
    pub(super) filters: Filters<Arc<Session>, Subscription>,
    pub(super) log: Log,
    pub(super) backlog: Backlog,
    /// Publications that wait for their turn.
    pub(super) pending: Pending,
    pub(super) memory: Arc<ApplicationMemory>,
    pub(super) counters: Arc<Counters>,
    last_number: u64,
    warned_at: Option<Timestamp>,
}

/// Returns true if a session gets messages of this quality of service now.
fn gets(session: &Session, qos: DeliveryQos) -> bool {
    qos == DeliveryQos::AtLeastOnce || session.is_connected()
}

impl Subscribers {
    pub(super) fn new(first_number: u64, memory: Arc<ApplicationMemory>) -> Self {
        Self {
            sessions: HashMap::new(),
            filters: Filters::default(),
            log: Log::new(first_number),
            backlog: Backlog::default(),
            pending: Pending::default(),
            memory,
            counters: Arc::default(),
            last_number: 0,
            warned_at: None,
        }
    }

    /// Reserves the memory of a session, if need be from messages that wait; an error if its owner has more than its share
    /// nevertheless.
    pub(super) fn reserve_memory(&self, session_owner: &SessionOwner) -> Result<SessionBytes, Exceeded> {
        let reserve = || self.memory.try_session(session_owner.session_bytes());
        reserve().or_else(|_| {
            self.shrink();
            reserve()
        })
    }

    /// Adds a session, and removes that of a client that is away if there are too many.
    pub(super) fn insert(
        &mut self,
        app_id: &AppId,
        id: Arc<str>,
        (session_owner, memory): (SessionOwner, SessionBytes),
        now: Timestamp,
    ) -> Arc<Session> {
        if self.sessions.len() >= SESSIONS_MAX {
            self.make_room(app_id, now, |_| true);
        }
        self.add(id, session_owner, memory)
    }

    /// Removes stored sessions of clients that are away, until one with this id can be stored; returns false if all
    /// that there may be are in use.
    pub(super) fn make_room_to_store(&mut self, app_id: &AppId, id: &str, now: Timestamp) -> bool {
        let is_other = |session: &&Arc<Session>| session.is_stored() && *session.id != *id;
        while self.sessions.values().filter(is_other).count() >= STORED_MAX {
            if !self.make_room(app_id, now, |session| is_other(&session)) {
                return false;
            }
        }
        true
    }

    /// Removes a session of those that `may_go`; returns false if their clients are all connected.
    fn make_room(&mut self, app_id: &AppId, now: Timestamp, may_go: impl Fn(&Arc<Session>) -> bool) -> bool {
        let Some(session) = self.least_needed(may_go) else { return false };
        if self.warned_at.is_none_or(|warned| now.since(warned) >= WARNING_INTERVAL) {
            self.warned_at = Some(now);
            tracing::warn!(%app_id, "removed the MQTT session of a client that is away: its application has too many");
        }
        self.discard(&session);
        true
    }

    pub(super) fn add(&mut self, id: Arc<str>, session_owner: SessionOwner, memory: SessionBytes) -> Arc<Session> {
        self.last_number += 1;
        let counters = Arc::clone(&self.counters);
        let session = Arc::new(Session::new(self.last_number, Arc::clone(&id), session_owner, counters, memory));
        self.sessions.insert(id, Arc::clone(&session));
        session
    }

    /// Drops messages until they take less memory: those of the sessions that have most, the oldest first. Returns
    /// whether there were any.
    pub(super) fn shrink(&self) -> bool {
        let before = self.memory.used();
        let target = before / 8 * 7;
        let drop_above = |bytes: usize| {
            let large = self.sessions.values().filter(|session| session.bytes() > bytes);
            large.filter(|session| self.memory.used() > target && session.drop_one()).count() > 0
        };
        let mut is_shrinking = true;
        while is_shrinking {
            let most = self.sessions.values().map(|session| session.bytes()).max().unwrap_or_default();
            // What is in flight cannot be dropped, even if it is most.
            is_shrinking = drop_above(most / 2) || drop_above(0);
        }
        // What remains may fit now.
        _ = self.memory.settle();
        self.memory.used() < before
    }

    /// Returns true if another stored session may replace one that has not been read.
    pub(super) fn is_crowded(&self) -> bool {
        !self.backlog.is_empty() && (self.sessions.len() >= SESSIONS_MAX || self.room() == 0)
    }

    /// Returns the number of sessions that can still be stored.
    pub(super) fn room(&self) -> usize {
        STORED_MAX.saturating_sub(self.sessions.values().filter(|session| session.is_stored()).count())
    }

    /// Returns a session whose client is away, of the owner with the most sessions: preferably one without
    /// subscriptions and messages, or else the one that has been away longest.
    fn least_needed(&self, may_go: impl Fn(&Arc<Session>) -> bool) -> Option<Arc<Session>> {
        let is_away = |session: &&Arc<Session>| session.away_since().is_some() && may_go(session);
        let away: Vec<_> = self.sessions.values().filter(is_away).collect();
        // Most of the time there is none, however many clients are connected.
        if away.is_empty() {
            return None;
        }
        let mut held: HashMap<Arc<str>, usize> = HashMap::new();
        let owners = self.sessions.values().map(|session| session.owner_name());
        owners.for_each(|name| *held.entry(name).or_default() += 1);
        let need = |session: &&&Arc<Session>| {
            let others = held.get(&session.owner_name()).copied().unwrap_or_default();
            (usize::MAX - others, session.contents(), session.away_since())
        };
        away.iter().min_by_key(need).map(|session| Arc::clone(session))
    }

    /// Returns true if this very session is in use, not another one with its id.
    pub(super) fn is_current(&self, session: &Arc<Session>) -> bool {
        self.sessions.get(&session.id) == Some(session)
    }

    /// Removes a session here and in the store.
    pub(super) fn remove(&mut self, session: &Arc<Session>) {
        if self.is_current(session) && session.is_stored() {
            self.log.removed.push(Arc::clone(&session.ownership));
        }
        self.forget(session);
        session.clear();
    }

    /// Removes a session whose client does not know, and counts what the client will not get.
    fn discard(&mut self, session: &Arc<Session>) {
        self.counters.dropped(session.count());
        self.backlog.discard(session);
        self.remove(session);
    }

    /// Removes sessions whose clients are away.
    pub(super) fn remove_where(&mut self, condition: impl Fn(&Session) -> bool) {
        let removed: Vec<_> = self.sessions.values().filter(|session| condition(session)).cloned().collect();
        removed.iter().for_each(|session| self.discard(session));
    }

    /// Forgets a session that is not in the store any more.
    pub(super) fn forget_deleted(&mut self, session: &Arc<Session>) {
        session.end(DisconnectReason::TakenOver);
        session.ownership.delete();
        self.forget(session);
        session.clear();
    }

    /// Leaves a session to the process that owns it now.
    pub(super) fn lose(&mut self, ownership: &Ownership) {
        ownership.lose();
        let session = self.sessions.get(&ownership.id).filter(|it| std::ptr::eq(&*it.ownership, ownership)).cloned();
        if let Some(session) = session {
            session.end(DisconnectReason::TakenOver);
            self.forget(&session);
            // Its messages stay in the log.
            session.clear();
        }
    }

    /// Removes a session here.
    pub(super) fn forget(&mut self, session: &Arc<Session>) {
        if self.is_current(session) {
            self.sessions.remove(&session.id);
        }
        if session.ownership.is_lost() {
            self.backlog.lose(session);
        } else {
            // Nobody else deletes what the log has for it.
            self.backlog.want(session);
        }
        for filter in session.take_filters().into_keys() {
            self.filters.remove(&filter, session);
        }
    }

    /// Delivers a message to all sessions that subscribed to it; returns how much that is.
    pub(super) fn deliver(&mut self, app_id: &AppId, durable: Option<&Durable>, message: Message) -> usize {
        let message = Arc::new(message.counted(&self.memory));
        let mut deliveries = self.deliveries(&message);
        let cost = MESSAGE_COST + deliveries.len();
        if let Some(durable) = durable {
            self.store(app_id, durable, &message, &mut deliveries);
        }
        for (session, delivery) in deliveries {
            if delivery.qos == DeliveryQos::AtLeastOnce {
                // Only with the earlier ones it is known how many are too many.
                self.backlog.want(&session);
            }
            session.push(delivery);
        }
        cost
    }

    /// Delivers a message to those sessions that have room for it behind what is live.
    pub(super) fn deliver_behind(&mut self, app_id: &AppId, durable: Option<&Durable>, message: Message) -> Recipients {
        let message = Arc::new(message.counted(&self.memory));
        let has_room = |session: &Arc<Session>| session.spare().0 > 0;
        let deliveries = self.deliveries_preferring(&message, |it| it.is_connected() && has_room(it));
        let deliveries = deliveries.into_iter().filter(|(session, delivery)| gets(session, delivery.qos));
        let (mut deliveries, full): (Vec<_>, Vec<_>) = deliveries.partition(|(session, _)| has_room(session));
        if let Some(durable) = durable {
            self.store(app_id, durable, &message, &mut deliveries);
        }
        let taken = deliveries.len();
        deliveries.into_iter().for_each(|(session, delivery)| session.push(delivery));
        Recipients { taken, full: full.into_iter().map(|(session, _)| Arc::clone(&session.id)).collect() }
    }

    /// Returns the room of the sessions that get messages on these topics, behind live messages.
    pub(super) fn spare<'a>(&mut self, topics: impl Iterator<Item = &'a str>, at_least: usize) -> SpareRoom {
        let (mut spare, at_least) = (SpareRoom::default(), at_least.min(SPARE_MAX));
        // Whatever waits here comes first.
        let is_busy = self.is_overloaded() || !self.pending.is_empty() || self.memory.is_exceeded();
        let mut seen = HashSet::new();
        let backlog = &mut self.backlog;
        for topic in topics {
            self.filters.for_each_candidates((topic, &named_levels(topic)), |candidates| {
                let candidates = candidates.iter().filter(|(session, it)| gets(session, it.qos));
                let most = candidates.max_by_key(|(session, _)| (session.spare(), session.is_connected()));
                let Some((session, _)) = most.filter(|(session, _)| seen.insert(session.number)) else { return };
                // Only when they are read it is known how many there are.
                backlog.want(session);
                let room = session.spare();
                spare.add(&session.id, if is_busy || room.0 < at_least { (0, 0) } else { room });
            });
        }
        spare
    }

    /// Returns true if so much waits that further publications are refused.
    pub(super) fn is_overloaded(&self) -> bool {
        self.log.is_full() || self.pending.is_full() || (self.memory.is_exceeded() && self.log.is_urgent())
    }

    /// Returns a delivery for each recipient. A session with several matching filters gets one, with the highest QoS.
    pub(super) fn deliveries(&mut self, message: &Arc<Message>) -> Vec<(Arc<Session>, Delivery)> {
        self.deliveries_preferring(message, |session| session.is_connected())
    }

    /// The same; of those who share a subscription, one that is preferred gets it, if there is one.
    fn deliveries_preferring(
        &mut self,
        message: &Arc<Message>,
        is_preferred: impl Fn(&Arc<Session>) -> bool,
    ) -> Vec<(Arc<Session>, Delivery)> {
        let mut deliveries: Vec<(Arc<Session>, Delivery)> = Vec::new();
        let mut places: HashMap<u64, usize> = HashMap::new();
        let mut add = |session: &Arc<Session>, subscription: &Subscription| {
            if subscription.no_local && message.publisher == Some(session.number) {
                return;
            }
            let qos = subscription.qos.min(message.qos);
            let place = *places.entry(session.number).or_insert(deliveries.len());
            if let Some((_, delivery)) = deliveries.get_mut(place) {
                delivery.qos = delivery.qos.max(qos);
                delivery.subscription_ids.extend(subscription.id);
            } else {
                let subscription_ids = subscription.id.into_iter().collect();
                let delivery = Delivery { message: Arc::clone(message), qos, subscription_ids, stored: None };
                deliveries.push((Arc::clone(session), delivery));
            }
        };
        self.filters.for_each_match((&message.topic, &message.named_levels()), is_preferred, &mut add);
        deliveries
    }

    /// Appends a message to the log, if stored sessions get it with QoS 1.
    pub(super) fn store(
        &mut self,
        app_id: &AppId,
        durable: &Durable,
        message: &Message,
        deliveries: &mut [(Arc<Session>, Delivery)],
    ) {
        let is_stored = |(session, delivery): &&mut (Arc<Session>, Delivery)| {
            delivery.qos == DeliveryQos::AtLeastOnce && session.is_stored()
        };
        let deliveries = deliveries.iter_mut().filter(is_stored);
        let deliveries = deliveries.map(|(session, delivery)| (Arc::clone(&session.ownership), delivery));
        self.append(app_id, durable, message, deliveries.collect());
    }

    /// Appends to the log what a session has that was not stored until now.
    pub(super) fn store_all(&mut self, app_id: &AppId, durable: &Durable, session: &Arc<Session>) {
        session.with_reliable(|delivery| {
            if delivery.stored.is_none() {
                let message = Arc::clone(&delivery.message);
                self.append(app_id, durable, &message, vec![(Arc::clone(&session.ownership), delivery)]);
            }
        });
    }

    fn append(
        &mut self,
        app_id: &AppId,
        durable: &Durable,
        message: &Message,
        deliveries: Vec<(Arc<Ownership>, &mut Delivery)>,
    ) {
        let Ok(key) = durable.message_key(app_id, self.log.next) else { return };
        let named = |(ownership, delivery): &(Arc<Ownership>, &mut Delivery)| {
            Some((Arc::clone(ownership), (ownership.recipient()?, delivery.subscription_ids.clone())))
        };
        let (owners, named): (Vec<_>, Vec<_>) = deliveries.iter().filter_map(named).unzip();
        if owners.is_empty() {
            return;
        }
        let stored = self.log.stored(self.log.next, key, owners);
        self.log.next += 1;
        for (_, delivery) in deliveries {
            delivery.stored = Some(Arc::clone(&stored));
        }
        let properties = message.properties.as_deref();
        let record = LogRecord::new(&message.topic, &message.payload, properties, named);
        let memory = self.memory.reserve_session(record.memory_bytes());
        self.log.append(Append { stored, record, _memory: memory });
    }
}
