//! Downlinks that the broker has not acknowledged.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::{connect::SERVICE, connection::Requests};
use crate::{Error, Result};

/// Maximum number of downlinks that wait for the broker.
const DOWNLINKS_MAX: usize = 1000;

/// Downlinks that the broker has not acknowledged, in the order in which they are sent.
#[derive(Debug, Default)]
pub(super) struct Downlinks {
    waiting: VecDeque<PendingDownlink>,
}

/// A downlink, and whom to tell that the broker has acknowledged it.
#[derive(Debug)]
pub(super) struct PendingDownlink {
    topic: String,
    payload: Vec<u8>,
    /// The number of the packet in which it was sent on this connection.
    packet: Option<u16>,
    done: oneshot::Sender<Result<()>>,
}

impl Downlinks {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends a downlink on the connection, or else on the next one.
    pub(super) fn push(&mut self, address: &str, requests: Option<&Requests>, downlink: PendingDownlink) {
        if self.waiting.len() >= DOWNLINKS_MAX {
            let (address, messages_max) = (address.to_owned(), DOWNLINKS_MAX);
            // A caller who has stopped waiting needs no answer.
            _ = downlink.done.send(Err(Error::QueueFull { service: SERVICE, address, messages_max }));
            return;
        }
        if let Some(requests) = requests {
            downlink.publish(requests);
        }
        self.waiting.push_back(downlink);
    }

    /// Sends all of them on a new connection.
    pub(super) fn publish_again(&mut self, requests: &Requests) {
        for downlink in &mut self.waiting {
            downlink.packet = None;
            downlink.publish(requests);
        }
    }

    /// The next one is in the packet of this number.
    pub(super) fn sent(&mut self, packet: u16) {
        if let Some(downlink) = self.waiting.iter_mut().find(|downlink| downlink.packet.is_none()) {
            downlink.packet = Some(packet);
        }
    }

    pub(super) fn acknowledged(&mut self, packet: u16) {
        let position = self.waiting.iter().position(|downlink| downlink.packet == Some(packet));
        if let Some(downlink) = position.and_then(|position| self.waiting.remove(position)) {
            _ = downlink.done.send(Ok(()));
        }
    }
}

impl PendingDownlink {
    pub(super) fn new(topic: String, payload: Vec<u8>, done: oneshot::Sender<Result<()>>) -> Self {
        Self { topic, payload, packet: None, done }
    }

    fn publish(&self, requests: &Requests) {
        // There is room for all of them; a connection that has ended is replaced, and they are sent again.
        if requests.publish(&self.topic, self.payload.clone()).is_err() {
            tracing::debug!(topic = self.topic, "the connection ended before a downlink");
        }
    }
}
