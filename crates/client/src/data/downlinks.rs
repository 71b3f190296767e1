//! Downlinks that the broker has not acknowledged.

use std::collections::VecDeque;

use bytes::Bytes;
use link::mqtt::BrokerConnection;
use tokio::sync::oneshot;

use super::connect::SERVICE;
use crate::{Error, Result};

/// Maximum number of downlinks that wait for the broker.
const DOWNLINKS_MAX: usize = 1000;
/// Maximum number of those that were sent, which is also the last number of a packet with one.
pub(super) const IN_FLIGHT_MAX: u16 = 100;

/// Downlinks that the broker has not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Downlinks {
    /// Those that were sent on this connection, in order, with the numbers of their packets.
    sent: VecDeque<(u16, PendingDownlink)>,
    /// Those that follow them.
    waiting: VecDeque<PendingDownlink>,
}

/// A downlink, and whom to tell that the broker has acknowledged it.
#[derive(Debug)]
pub(super) struct PendingDownlink {
    pub(super) topic: String,
    pub(super) payload: Bytes,
    pub(super) done: oneshot::Sender<Result<()>>,
}

impl Downlinks {
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty()
    }

    /// Adds a downlink to those that are to be sent.
    pub(super) fn push(&mut self, address: &str, downlink: PendingDownlink) {
        if self.sent.len() + self.waiting.len() >= DOWNLINKS_MAX {
            let (address, messages_max) = (address.to_owned(), DOWNLINKS_MAX);
            // A caller who has stopped waiting needs no answer.
            _ = downlink.done.send(Err(Error::QueueFull { service: SERVICE, address, messages_max }));
            return;
        }
        self.waiting.push_back(downlink);
    }

    /// Sends as many as the broker and the connection take.
    pub(super) fn send(&mut self, connection: &mut BrokerConnection) {
        while connection.has_room()
            && let Some(packet) = self.free_packet()
            && let Some(downlink) = self.waiting.pop_front()
        {
            connection.publish(packet, &downlink.topic, &downlink.payload);
            self.sent.push_back((packet, downlink));
        }
    }

    /// A number that no sent downlink has; none if there are too many.
    fn free_packet(&self) -> Option<u16> {
        (1..=IN_FLIGHT_MAX).find(|packet| self.sent.iter().all(|(sent, _)| sent != packet))
    }

    /// The connection was lost: those that were sent are to be sent again, first of all.
    pub(super) fn connection_lost(&mut self) {
        while let Some((_, downlink)) = self.sent.pop_back() {
            self.waiting.push_front(downlink);
        }
    }

    pub(super) fn acknowledged(&mut self, packet: u16) {
        let position = self.sent.iter().position(|(sent, _)| *sent == packet);
        if let Some((_, downlink)) = position.and_then(|position| self.sent.remove(position)) {
            _ = downlink.done.send(Ok(()));
        }
    }
}
