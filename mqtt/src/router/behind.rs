//! What becomes of messages that are sent again, which must not push live ones out of the queues of sessions.

use std::sync::Arc;

/// What sessions have room for behind what is live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spare {
    /// How many sessions have room.
    pub sessions: usize,
    /// How many messages each of those can take.
    pub messages: usize,
    /// How many bytes of messages each of those can take.
    pub bytes: usize,
    /// The ids of the sessions that have no room now: hashes of the client id and of who owns it.
    pub full: Vec<Arc<str>>,
}

/// Who got a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// How many sessions.
    pub taken: usize,
    /// The ids of the sessions that had no room.
    pub full: Vec<Arc<str>>,
}

impl Spare {
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
