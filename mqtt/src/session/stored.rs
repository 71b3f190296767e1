//! The stored form of a session, and its return after a restart.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use store::Version;
use types::Timestamp;

use super::{
    Presence, Session, SessionState, Subscription,
    durable::{SessionRecord, SubscriptionRecord},
    message::{Delivery, DeliveryQos},
    subscription_bytes,
};
use crate::access::permissions::TOPIC_BYTES_MAX;

impl Session {
    /// Returns true if messages from before the restart are not in memory yet.
    pub(crate) fn has_backlog(&self) -> bool {
        self.lock().backlog.is_some()
    }

    /// Takes what has come since it was restored.
    pub(crate) fn take_waiting(&self) -> VecDeque<Delivery> {
        std::mem::take(&mut self.lock().outbox).into_waiting()
    }

    /// It has all messages from before. What came later follows. Those with numbers below `below` are in the log since
    /// before it was restored.
    pub(crate) fn finish_restoring(&self, newer: VecDeque<Delivery>, below: u64) {
        newer.into_iter().for_each(|delivery| self.push(delivery));
        let mut state = self.lock();
        if let Some(record) = state.backlog.take() {
            state.outbox.repeat(record.sent_below(below), record.last_packet_id());
        }
    }

    /// Stores the session from now on. It is a new one, unless it was restored.
    pub(crate) fn own(&self, version: Version, claim: String, restored: Option<&SessionRecord>) {
        let mut state = self.lock();
        state.generation = restored.map_or(Some(claim), |record| record.generation.clone());
        // Nothing else has changed of a session whose client was away.
        state.is_changed = restored.is_none_or(|record| record.away_since_ms.is_none());
        let record = SessionRecord { generation: state.generation.clone(), ..SessionRecord::default() };
        self.ownership.own(version, record.recipient(&self.id).into());
    }

    /// The record to be stored, if it has changed. `next` is the number of the next message of the log. What may be out
    /// of date for a while counts only if it is `due`.
    pub(crate) fn take_record(&self, next: u64, is_due: bool, now: Timestamp) -> Option<SessionRecord> {
        let mut state = self.lock();
        if !self.is_stored() || !(state.is_changed || (is_due && state.is_behind)) {
            return None;
        }
        (state.is_changed, state.is_behind, state.stored_at) = (false, false, now);
        Some(state.record(next))
    }

    /// Restores the session from its record, except for its messages; returns the record that they need.
    pub(crate) fn restore(&self, mut record: SessionRecord, now: Timestamp) -> Arc<SessionRecord> {
        let mut state = self.lock();
        state.expiry = Duration::from_millis(record.expiry_ms);
        // Until this process started, the client of a session that was connected had no chance to come back.
        let since =
            record.away_since_ms.map_or(now, |ms| Timestamp::from_millis(i64::try_from(ms).unwrap_or(i64::MAX)));
        state.connection = Presence::AwaySince(since);
        state.dropped = record.dropped;
        state.session_owner.name = record.session_owner.as_str().into();
        let delivery_qos = |qos| if qos == 0 { DeliveryQos::AtMostOnce } else { DeliveryQos::AtLeastOnce };
        // Earlier versions stored any.
        let filters =
            std::mem::take(&mut record.filters).into_iter().filter(|(filter, _)| filter.len() <= TOPIC_BYTES_MAX);
        let filters = filters.map(|(filter, SubscriptionRecord { qos, no_local, id })| {
            (filter, Subscription { qos: delivery_qos(qos), no_local, id })
        });
        state.filters = filters.collect();
        let bytes = state.filters.keys().map(|filter| subscription_bytes(filter)).sum();
        state.memory.add(bytes);
        let record = Arc::new(record);
        state.backlog = Some(Arc::clone(&record));
        record
    }
}

impl SessionState {
    /// The messages of the log that the client needs: those that are in flight, with their packet identifiers, and the
    /// first that waits.
    fn needed(&self, next: u64) -> (Vec<u16>, Vec<u64>, u64) {
        if let Some(record) = &self.backlog {
            return (record.packet_ids.clone(), record.in_flight.clone(), record.waiting_from);
        }
        let (in_flight, waiting) = self.outbox.logged();
        let (packet_ids, in_flight) = in_flight.into_iter().unzip();
        (packet_ids, in_flight, waiting.unwrap_or(next))
    }

    /// Returns the number below which messages may have been sent before the restart, and the last packet identifier.
    fn repeated(&self, next: u64) -> (u64, u16) {
        match &self.backlog {
            // These include some that have come since, which does no harm.
            Some(record) => (record.sent_below(next), record.last_packet_id()),
            None => self.outbox.repeated(),
        }
    }

    fn record(&self, next: u64) -> SessionRecord {
        let (packet_ids, in_flight, waiting_from) = self.needed(next);
        let (sent_below, last_packet_id) = self.repeated(next);
        let filters = self.filters.iter().map(|(filter, Subscription { qos, no_local, id })| {
            (filter.clone(), SubscriptionRecord { qos: *qos as u8, no_local: *no_local, id: *id })
        });
        SessionRecord {
            filters: filters.collect(),
            expiry_ms: u64::try_from(self.expiry.as_millis()).unwrap_or(u64::MAX),
            away_since_ms: match self.connection {
                Presence::Connected(_) => None,
                Presence::AwaySince(since) => Some(since.as_unix_ms()),
            },
            in_flight,
            packet_ids,
            waiting_from,
            sent_below: if sent_below > waiting_from { sent_below } else { 0 },
            last_packet_id,
            dropped: self.dropped,
            generation: self.generation.clone(),
            session_owner: self.session_owner.name.to_string(),
        }
    }
}
