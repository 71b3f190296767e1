//! Messages that are sent again, which must not push live ones out of the queues of sessions.

use std::sync::Arc;

/// Room that sessions have for messages behind the live ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpareRoom {
    /// Number of sessions that have room.
    pub sessions: usize,
    /// Number of messages that each of those can take.
    pub messages: usize,
    /// Bytes of messages that each of those can take.
    pub bytes: usize,
    /// Ids of the sessions that have no room now: hashes of the client id and of its owner.
    pub full: Vec<Arc<str>>,
}

/// Those that got a message, and those that could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipients {
    /// Number of sessions that got it.
    pub taken: usize,
    /// Ids of the sessions that had no room.
    pub full: Vec<Arc<str>>,
}

impl SpareRoom {
    pub(super) fn add(&mut self, id: &Arc<str>, (messages, bytes): (usize, usize)) {
        if messages == 0 {
            return self.full.push(Arc::clone(id));
        }
        let is_first = self.sessions == 0;
        self.messages = if is_first { messages } else { self.messages.min(messages) };
        self.bytes = if is_first { bytes } else { self.bytes.min(bytes) };
        self.sessions += 1;
    }
}
