//! Publications of an application that wait for their turn, because they go to many sessions.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::session::message::Message;

/// Number of deliveries that may wait for a turn before further publications are refused.
const DELIVERIES_MAX: usize = 1 << 20;

/// The messages of a publication that have not been brought to their sessions.
pub(in crate::router) struct PublicationRest {
    /// The number that its first message in the log could have.
    pub(super) first: u64,
    pub(super) messages: VecDeque<Message>,
}

/// The publications that wait, in order.
#[derive(Default)]
pub(super) struct Pending {
    publications: VecDeque<WaitingPublication>,
    /// Number of deliveries that wait, if every session gets every message.
    deliveries: usize,
}

struct WaitingPublication {
    rest: PublicationRest,
    /// For each of its messages.
    sessions: usize,
    saved: oneshot::Sender<bool>,
}

impl Pending {
    /// Adds a publication to this number of sessions. It is told when its messages are saved.
    pub(super) fn push(&mut self, rest: PublicationRest, sessions: usize) -> oneshot::Receiver<bool> {
        let (saved, receiver) = oneshot::channel();
        self.deliveries += rest.messages.len() * sessions;
        self.publications.push_back(WaitingPublication { rest, sessions, saved });
        receiver
    }

    pub(super) fn is_empty(&self) -> bool {
        self.publications.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.deliveries > DELIVERIES_MAX
    }

    /// Takes the next message.
    pub(super) fn next(&mut self) -> Option<Message> {
        let front = self.publications.front_mut()?;
        let message = front.rest.messages.pop_front()?;
        self.deliveries = self.deliveries.saturating_sub(front.sessions);
        Some(message)
    }

    /// Takes a publication of which no message is left: the number that its first message could have, and who is told.
    pub(super) fn finished(&mut self) -> Option<(u64, oneshot::Sender<bool>)> {
        let WaitingPublication { rest, saved, .. } =
            self.publications.pop_front_if(|front| front.rest.messages.is_empty())?;
        Some((rest.first, saved))
    }
}
