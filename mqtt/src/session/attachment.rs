//! The use of a session by the connection that has it.

use std::sync::Arc;

use parking_lot::MutexGuard;
use types::Timestamp;

use super::{Presence, Session, SessionState, disconnect::Disconnect, outbox::Sending};

/// Maximum number of publications with QoS 2 that a client may begin without releasing them.
const UNRELEASED_MAX: usize = 100;

/// The right of one connection to use a session, until another takes it over.
pub(crate) struct Attachment {
    pub(crate) session: Arc<Session>,
    pub(super) connection: u64,
    pub(crate) disconnect: Disconnect,
    /// True if the session is an old one, as CONNACK says.
    pub(crate) session_present: bool,
}

impl Attachment {
    /// The session's state, unless another connection has it now.
    pub(crate) fn state(&self) -> Option<MutexGuard<'_, SessionState>> {
        Some(self.session.lock()).filter(|state| state.connections == self.connection)
    }

    /// Waits until there may be more to send.
    pub(crate) async fn changed(&self) {
        self.session.changed.notified().await;
    }

    /// Takes the next message, if the client has acknowledged all but `window - 1`.
    pub(crate) fn next(&self, window: usize) -> Option<Sending> {
        let mut state = self.state()?;
        let next = state.outbox.next(window);
        state.count_queue();
        next
    }

    pub(crate) fn acknowledge(&self, packet_id: u16) {
        if let Some(mut state) = self.state() {
            state.is_behind |= state.outbox.acknowledge(packet_id);
            state.count_queue();
        }
    }

    /// Returns the number of messages dropped since the client was last told, once its queue is at most half full.
    pub(crate) fn take_dropped(&self) -> Option<u64> {
        let mut state = self.state()?;
        if state.dropped == 0 || state.outbox.is_more_than_half_full() {
            return None;
        }
        state.is_behind = true;
        Some(std::mem::take(&mut state.dropped))
    }

    /// Returns true if a publication with QoS 2 was already accepted under this identifier.
    pub(crate) fn is_unreleased(&self, packet_id: u16) -> bool {
        self.state().is_some_and(|state| state.unreleased.contains(&packet_id))
    }

    /// Returns true if the client may begin another publication with QoS 2.
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
        state.is_changed = true;
        state.outbox.disconnected();
        state.count_queue();
        true
    }
}
