//! Changes that an application has to save: messages, changed sessions, and deletions.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use store::{BATCH_STEPS_MAX, Key, Version};
use tokio::sync::oneshot;

use crate::session::{
    Session,
    budget::SessionBytes,
    durable::{LogRecord, SessionRecord},
    message::{LoggedMessage, Release, Released},
    ownership::Ownership,
};

/// Maximum number of messages that one commit saves, and below it of messages and sessions that it deletes.
const COMMIT_MESSAGES_MAX: usize = 128;
const COMMIT_DELETIONS_MAX: usize = 128;
const COMMIT_REMOVALS_MAX: usize = 50;
const COMMIT_BYTES_MAX: usize = 8 << 20;

/// Maximum number of recipients of these messages, summed over the messages. Encoding them keeps others waiting.
const COMMIT_RECIPIENTS_MAX: usize = 2048;

/// Bytes that may wait to be saved.
const APPENDED_BYTES_MAX: usize = 32 << 20;

/// Changes that wait to be saved.
pub(super) struct Log {
    /// The number of the next message.
    pub(super) next: u64,
    appended: VecDeque<Append>,
    appended_bytes: usize,
    released: Released,
    /// Sessions to delete.
    pub(super) removed: Vec<Arc<Ownership>>,
    waiting: VecDeque<SaveWaiter>,
    pub(super) is_saving: bool,
    /// True if the last commit failed.
    pub(super) is_failing: bool,
    /// True if the next commit also saves what may be late.
    pub(super) saves_all: bool,
}

/// A message, and the sessions that it is saved for.
pub(super) struct Append {
    pub(super) stored: Arc<LoggedMessage>,
    pub(super) record: LogRecord,
    pub(super) _memory: SessionBytes,
}

/// Somebody who waits until messages are saved.
pub(super) struct SaveWaiter {
    /// The number of the first of them, and of the first that is not.
    first: u64,
    next: u64,
    /// True if one of the messages could not be saved.
    is_lost: bool,
    saved: oneshot::Sender<bool>,
}

/// Content of one commit.
#[derive(Default)]
pub(super) struct LogCommit {
    pub(super) appended: Vec<Append>,
    pub(super) changed: Vec<(Arc<Session>, SessionRecord)>,
    pub(super) removed: Vec<Arc<Ownership>>,
    pub(super) released: Vec<Release>,
    /// The sessions that this process must still own, by the versions of the records that say so.
    pub(super) owners: HashMap<(Arc<str>, Version), Arc<Ownership>>,
    waiting: Vec<SaveWaiter>,
}

impl Log {
    pub(super) fn new(next: u64) -> Self {
        Self {
            next,
            appended: VecDeque::new(),
            appended_bytes: 0,
            released: Released::default(),
            removed: Vec::new(),
            waiting: VecDeque::new(),
            is_saving: false,
            is_failing: false,
            saves_all: false,
        }
    }

    /// A handle of a message in the log.
    pub(super) fn stored(&self, number: u64, key: Key, recipients: Vec<Arc<Ownership>>) -> Arc<LoggedMessage> {
        Arc::new(LoggedMessage::new(number, key, recipients, Arc::clone(&self.released)))
    }

    pub(super) fn append(&mut self, append: Append) {
        self.appended_bytes += append.record.bytes();
        self.appended.push_back(append);
    }

    /// Returns true if the store does not keep up.
    pub(super) fn is_full(&self) -> bool {
        self.appended_bytes > APPENDED_BYTES_MAX
    }

    /// Resolves when all messages are saved that were appended so far, and says whether those from `first` on are.
    pub(super) fn saved(&mut self, first: u64) -> oneshot::Receiver<bool> {
        let (saved, receiver) = oneshot::channel();
        self.notify_when_saved(first, saved);
        receiver
    }

    /// Notifies somebody when all messages are saved that were appended so far, and whether those from `first` on are.
    pub(super) fn notify_when_saved(&mut self, first: u64, saved: oneshot::Sender<bool>) {
        self.waiting.push_back(SaveWaiter { first, next: self.next, is_lost: false, saved });
    }

    /// Returns true if a session with this id is to be deleted.
    pub(super) fn is_removing(&self, id: &str) -> bool {
        self.removed.iter().any(|removed| *removed.id == *id)
    }

    /// Takes what the next commit saves.
    pub(super) fn take(&mut self, changed: Vec<(Arc<Session>, SessionRecord)>) -> LogCommit {
        let mut commit = LogCommit::default();
        for (session, record) in changed {
            commit.expect(&session.ownership);
            commit.changed.push((session, record));
        }
        self.removed.retain(|removed| removed.version().is_some());
        for removed in self.removed.iter().take(COMMIT_REMOVALS_MAX) {
            commit.expect(removed);
            commit.removed.push(Arc::clone(removed));
        }
        self.take_appended(&mut commit);
        self.take_released(&mut commit);
        commit
    }

    fn take_appended(&mut self, commit: &mut LogCommit) {
        let (mut bytes, mut recipients) = (0, 0);
        while commit.appended.len() < COMMIT_MESSAGES_MAX
            && bytes < COMMIT_BYTES_MAX
            && recipients < COMMIT_RECIPIENTS_MAX
        {
            let Some(append) = self.appended.pop_front_if(|append| commit.has_room_for(&append.stored.recipients))
            else {
                break;
            };
            self.appended_bytes -= append.record.bytes();
            if Arc::strong_count(&append.stored) == 1 {
                // Everybody has it already.
                append.stored.disown();
                continue;
            }
            bytes += append.record.bytes();
            recipients += append.stored.recipients.len();
            append.stored.recipients.iter().for_each(|recipient| commit.expect(recipient));
            commit.appended.push(append);
        }
        let saved_before = self.appended.front().map_or(self.next, |append| append.stored.number);
        while let Some(waiting) = self.waiting.pop_front_if(|waiting| waiting.next <= saved_before) {
            commit.waiting.push(waiting);
        }
    }

    /// Takes messages that can be deleted. Those of a session that is to be deleted itself go with it or after it, and
    /// those that another process may need stay until they expire.
    fn take_released(&mut self, commit: &mut LogCommit) {
        let is_early = |recipient: &Arc<Ownership>| {
            let is_in = |removed: &[Arc<Ownership>]| removed.iter().any(|it| Arc::ptr_eq(it, recipient));
            is_in(&self.removed) && !is_in(&commit.removed)
        };
        let mut released = self.released.lock();
        released.retain(|release| !release.recipients.iter().any(|recipient| recipient.is_lost()));
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for release in released.drain(..) {
            if taken.len() < COMMIT_DELETIONS_MAX && !release.recipients.iter().any(is_early) {
                taken.push(release);
            } else {
                left.push(release);
            }
        }
        for release in taken {
            if commit.has_room_for(&release.recipients) {
                release.recipients.iter().for_each(|recipient| commit.expect(recipient));
                commit.released.push(release);
            } else {
                left.push(release);
            }
        }
        *released = left;
    }

    /// Forgets what has been saved.
    pub(super) fn succeeded(&mut self, commit: &LogCommit) {
        commit.removed.iter().for_each(|removed| removed.delete());
        self.removed.retain(|removed| removed.version().is_some());
    }

    /// Takes back what could not be saved. Messages are not: whoever published them is told, and publishes them again.
    pub(super) fn failed(&mut self, commit: &mut LogCommit) {
        commit.changed.iter().for_each(|(session, _)| session.mark_changed());
        self.released.lock().append(&mut commit.released);
        let lost: Vec<_> = commit.appended.iter().map(|append| append.stored.number).collect();
        self.lost(commit, &lost);
    }

    /// Remembers for those who wait that messages are not saved for everybody.
    pub(super) fn lost(&mut self, commit: &mut LogCommit, numbers: &[u64]) {
        for waiting in self.waiting.iter_mut().chain(&mut commit.waiting) {
            waiting.is_lost |= numbers.iter().any(|number| (waiting.first..waiting.next).contains(number));
        }
    }

    /// Returns true if messages are unsaved, or somebody waits for a commit.
    pub(super) fn is_urgent(&self) -> bool {
        !self.appended.is_empty() || !self.waiting.is_empty()
    }

    pub(super) fn has_released(&self) -> bool {
        !self.released.lock().is_empty()
    }
}

impl LogCommit {
    pub(super) fn is_empty(&self) -> bool {
        self.appended.is_empty()
            && self.changed.is_empty()
            && self.removed.is_empty()
            && self.released.is_empty()
            && self.waiting.is_empty()
    }

    /// Forgets a session that another process owns now; returns the messages that are not saved for it.
    pub(super) fn forget(&mut self, lost: &Arc<Ownership>) -> Vec<u64> {
        self.owners.retain(|_, ownership| !Arc::ptr_eq(ownership, lost));
        self.changed.retain(|(session, _)| !Arc::ptr_eq(&session.ownership, lost));
        self.removed.retain(|removed| !Arc::ptr_eq(removed, lost));
        let is_for = |recipients: &[Arc<Ownership>]| recipients.iter().any(|recipient| Arc::ptr_eq(recipient, lost));
        self.released.retain(|release| !is_for(&release.recipients));
        let appended = self.appended.iter().filter(|append| is_for(&append.stored.recipients));
        appended.map(|append| append.stored.number).collect()
    }

    /// Tells everybody who waited.
    pub(super) fn resolve(self, is_saved: bool) {
        for SaveWaiter { is_lost, saved, .. } in self.waiting {
            _ = saved.send(is_saved && !is_lost);
        }
    }

    fn expect(&mut self, ownership: &Arc<Ownership>) {
        if let Some(version) = ownership.version() {
            self.owners.insert((Arc::clone(&ownership.id), version), Arc::clone(ownership));
        }
    }

    /// Returns true if a message and a condition for each of its recipients still fit into the commit.
    fn has_room_for(&self, recipients: &[Arc<Ownership>]) -> bool {
        let changes = self.appended.len() + self.changed.len() + 2 * self.removed.len() + self.released.len();
        let is_new = |recipient: &&Arc<Ownership>| {
            let version = recipient.version();
            version.is_some_and(|version| !self.owners.contains_key(&(Arc::clone(&recipient.id), version)))
        };
        let room = BATCH_STEPS_MAX - (self.owners.len() + changes).min(BATCH_STEPS_MAX);
        recipients.len() < room || recipients.iter().filter(is_new).count() < room
    }
}
