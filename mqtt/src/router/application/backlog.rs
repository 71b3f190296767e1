//! Sessions with messages from before the start that are still in the log only.

use std::{collections::HashSet, sync::Arc};

use crate::session::{Session, durable::SessionRecord};

/// Maximum number of doublings of the pause between attempts to read: up to half a minute, as the broker looks for
/// changes every half a second.
const PAUSE_DOUBLINGS_MAX: u32 = 7;

/// A session whose earlier messages are not in memory.
pub(super) struct Unread {
    pub(super) session: Arc<Session>,
    /// Record of the session as read from the store.
    pub(super) record: Arc<SessionRecord>,
    /// Its messages with smaller numbers are in the log only. Others have come since, and are in memory.
    pub(super) below: u64,
    /// True if the session was removed without its client. Its messages count as dropped.
    is_discarded: bool,
}

/// The sessions of an application whose earlier messages are not in memory.
#[derive(Default)]
pub(super) struct Backlog {
    unread: Vec<Unread>,
    /// True if one of the sessions needs its messages now, or is gone and leaves them in the log.
    is_wanted: bool,
    pub(super) is_reading: bool,
    /// Number of consecutive failed attempts to read.
    failures: u32,
    /// Number of looks for changes to skip before the next attempt.
    pause: u32,
}

impl Unread {
    pub(super) fn new(session: &Arc<Session>, record: &Arc<SessionRecord>, below: u64) -> Self {
        Self { session: Arc::clone(session), record: Arc::clone(record), below, is_discarded: false }
    }

    /// Returns the name of the session among the recipients of a message.
    pub(super) fn recipient(&self) -> String {
        self.record.recipient(&self.session.id)
    }

    /// Returns true if this message is due to its client and in the log only.
    pub(super) fn owes(&self, number: u64) -> bool {
        number < self.below && self.record.owes(number)
    }

    pub(super) fn is_discarded(&self) -> bool {
        self.is_discarded
    }
}

impl Backlog {
    pub(super) fn add(&mut self, unread: Unread) {
        self.unread.push(unread);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Returns whether they are to be read now, unless that is being done.
    pub(super) fn begin(&mut self) -> bool {
        self.is_wanted && !std::mem::replace(&mut self.is_reading, true)
    }

    /// Returns true if the last attempt to read failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Everything has been read that was wanted.
    pub(super) fn succeeded(&mut self) {
        (self.failures, self.pause) = (0, 0);
    }

    /// Doubles the pause before the next attempt.
    pub(super) fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.pause = (1 << self.failures.min(PAUSE_DOUBLINGS_MAX)) / 2;
    }

    /// Counts down the pause; returns whether it is over.
    pub(super) fn is_due(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Has everything read, if this session is among those that are not.
    pub(super) fn want(&mut self, session: &Session) {
        self.is_wanted |= !self.is_empty() && session.has_backlog();
    }

    /// A session is removed without its client.
    pub(super) fn discard(&mut self, session: &Arc<Session>) {
        let unread = self.unread.iter_mut().find(|unread| unread.session == *session);
        unread.into_iter().for_each(|unread| unread.is_discarded = true);
    }

    /// A session is another process's, which reads its messages.
    pub(super) fn lose(&mut self, session: &Arc<Session>) {
        self.unread.retain(|unread| unread.session != *session);
        if self.is_empty() {
            self.is_wanted = false;
            self.succeeded();
        }
    }

    /// The numbers of the sessions.
    pub(super) fn numbers(&self) -> HashSet<u64> {
        self.unread.iter().map(|unread| unread.session.number).collect()
    }

    /// Takes those of these sessions that are still there, because their messages have been read.
    pub(super) fn take(&mut self, numbers: &HashSet<u64>) -> Vec<Unread> {
        let all = std::mem::take(&mut self.unread);
        let (taken, left) = all.into_iter().partition(|unread| numbers.contains(&unread.session.number));
        self.unread = left;
        self.is_wanted &= !self.is_empty();
        taken
    }
}
