//! Queues in the file: messages by id, and an index of when each may be delivered.

use std::time::Duration;

use bytes::{Buf, Bytes};
use redb::ReadableTable;

use super::tables::{Fault, Tables};
use crate::{Error, Key, Lease, queue::lease_end};

/// A message as it is kept.
struct Message {
    /// The end of its lease; zero when it was never leased.
    due: u64,
    deliveries: u32,
    consumer: String,
    value: Bytes,
}

impl Tables<'_> {
    /// Adds a message to the end of a queue.
    pub(super) fn push(&mut self, queue: &Key, value: &Bytes) -> Result<(), Fault> {
        let id = self.next_version();
        self.keep(queue, id, &Message { due: 0, deliveries: 0, consumer: String::new(), value: value.clone() })?;
        let length = self.lengths.get(queue.as_str())?.map_or(0, |length| length.value());
        self.lengths.insert(queue.as_str(), length + 1)?;
        Ok(())
    }

    /// Leases messages: first those whose lease ran out, then the oldest.
    pub(super) fn reserve(
        &mut self,
        queue: &Key,
        consumer: &str,
        count: usize,
        visible_after: Duration,
    ) -> Result<Vec<Lease>, Fault> {
        let until = lease_end(self.now, visible_after);
        let mut leases = Vec::new();
        for id in self.next_ids(queue, count)? {
            let Some(mut message) = self.message(queue, id)? else { continue };
            self.due.remove((queue.as_str(), message.due, id))?;
            message.due = until;
            message.deliveries = message.deliveries.saturating_add(1);
            consumer.clone_into(&mut message.consumer);
            self.keep(queue, id, &message)?;
            let Message { deliveries, consumer, value, .. } = message;
            leases.push(Lease { id, consumer, deliveries, value });
        }
        self.changes += leases.len();
        Ok(leases)
    }

    /// Removes a message, if the lease is still the last one.
    pub(super) fn ack(&mut self, queue: &Key, lease: &Lease) -> Result<bool, Fault> {
        let Some(message) = self.message(queue, lease.id)? else { return Ok(false) };
        if (message.deliveries, &message.consumer) != (lease.deliveries, &lease.consumer) {
            return Ok(false);
        }
        self.messages.remove((queue.as_str(), lease.id))?;
        self.due.remove((queue.as_str(), message.due, lease.id))?;
        let length = self.lengths.get(queue.as_str())?.map_or(0, |length| length.value());
        match length.saturating_sub(1) {
            0 => self.lengths.remove(queue.as_str())?,
            length => self.lengths.insert(queue.as_str(), length)?,
        };
        self.changes += 1;
        Ok(true)
    }

    fn next_ids(&self, queue: &Key, count: usize) -> Result<Vec<u64>, Fault> {
        let queue = queue.as_str();
        let expired = self.due.range((queue, 1, 0)..=(queue, self.now, u64::MAX))?;
        let fresh = self.due.range((queue, 0, 0)..=(queue, 0, u64::MAX))?;
        expired.chain(fresh).take(count).map(|found| Ok(found?.0.value().2)).collect()
    }

    fn message(&self, queue: &Key, id: u64) -> Result<Option<Message>, Fault> {
        let Some(bytes) = self.messages.get((queue.as_str(), id))?.map(|found| found.value().to_vec()) else {
            return Ok(None);
        };
        let damaged = || Fault::Refused(Error::corrupt(format!("message {id} of queue {queue}")));
        Message::decode(bytes.into()).map(Some).ok_or_else(damaged)
    }

    fn keep(&mut self, queue: &Key, id: u64, message: &Message) -> Result<(), Fault> {
        self.messages.insert((queue.as_str(), id), message.encode().as_slice())?;
        self.due.insert((queue.as_str(), message.due, id), ())?;
        Ok(())
    }
}

impl Message {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.consumer.len() + self.value.len());
        bytes.extend_from_slice(&self.due.to_be_bytes());
        bytes.extend_from_slice(&self.deliveries.to_be_bytes());
        bytes.extend_from_slice(&(self.consumer.len() as u32).to_be_bytes());
        bytes.extend_from_slice(self.consumer.as_bytes());
        bytes.extend_from_slice(&self.value);
        bytes
    }

    fn decode(mut bytes: Bytes) -> Option<Self> {
        let due = bytes.try_get_u64().ok()?;
        let deliveries = bytes.try_get_u32().ok()?;
        let length = bytes.try_get_u32().ok()? as usize;
        if length > bytes.len() {
            return None;
        }
        let consumer = String::from_utf8(bytes.split_to(length).into()).ok()?;
        Some(Self { due, deliveries, consumer, value: bytes })
    }
}
