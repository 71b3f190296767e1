//! What an application has to save: messages, changed sessions, and what can be deleted.

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
};

use bytes::Bytes;
use store::{Key, Version};
use tokio::sync::oneshot;

use crate::{
    durable::SessionRecord,
    message::{Released, Stored},
    session::Session,
};

/// How many messages one commit saves at most, and how many messages and sessions it deletes. With a condition and a
/// record for each session of an application, that is fewer steps than a commit may have.
const COMMIT_MESSAGES_MAX: usize = 128;
const COMMIT_DELETIONS_MAX: usize = 128;
const COMMIT_REMOVALS_MAX: usize = 50;
const COMMIT_BYTES_MAX: usize = 8 << 20;

/// How much may wait to be saved.
const APPENDED_BYTES_MAX: usize = 32 << 20;

/// What waits to be saved.
pub(super) struct Log {
    /// The number of the next message.
    pub(super) next: u64,
    appended: VecDeque<Append>,
    appended_bytes: usize,
    released: Released,
    pub(super) removed: Vec<(Arc<str>, Version)>,
    /// Who waits until a message is saved, by its number.
    waiting: VecDeque<(u64, oneshot::Sender<bool>)>,
    pub(super) is_saving: bool,
    /// Whether the last commit failed.
    pub(super) is_failing: bool,
}

/// A message, and the sessions that it is saved for.
pub(super) struct Append {
    pub(super) stored: Arc<Stored>,
    pub(super) value: Bytes,
    pub(super) recipients: Vec<Arc<Session>>,
}

/// What one commit saves.
#[derive(Default)]
pub(super) struct Work {
    pub(super) appended: Vec<Append>,
    pub(super) changed: Vec<(Arc<Session>, SessionRecord)>,
    pub(super) removed: Vec<(Arc<str>, Version)>,
    pub(super) released: Vec<Key>,
    pub(super) waiting: Vec<oneshot::Sender<bool>>,
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
        }
    }

    /// A handle of a message in the log.
    pub(super) fn stored(&self, number: u64, key: Key) -> Arc<Stored> {
        Arc::new(Stored::new(number, key, Arc::clone(&self.released)))
    }

    pub(super) fn append(&mut self, append: Append) {
        self.appended_bytes += append.value.len();
        self.appended.push_back(append);
    }

    /// Whether the store does not keep up.
    pub(super) fn is_full(&self) -> bool {
        self.appended_bytes > APPENDED_BYTES_MAX
    }

    /// Resolves when all messages that were appended so far are saved.
    pub(super) fn saved(&mut self) -> oneshot::Receiver<bool> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.push_back((self.next, sender));
        receiver
    }

    /// Takes what the next commit saves.
    pub(super) fn take(&mut self, changed: Vec<(Arc<Session>, SessionRecord)>) -> Work {
        let removals = self.removed.len().min(COMMIT_REMOVALS_MAX);
        let mut work = Work { changed, removed: self.removed.drain(..removals).collect(), ..Work::default() };
        let mut bytes = 0;
        while work.appended.len() < COMMIT_MESSAGES_MAX && bytes < COMMIT_BYTES_MAX {
            let Some(append) = self.appended.pop_front() else { break };
            self.appended_bytes -= append.value.len();
            if Arc::strong_count(&append.stored) == 1 {
                // Everybody has it already.
                append.stored.disown();
                continue;
            }
            bytes += append.value.len();
            work.appended.push(append);
        }
        let saved_before = self.appended.front().map_or(self.next, |append| append.stored.number);
        while self.waiting.front().is_some_and(|(number, _)| *number <= saved_before) {
            work.waiting.extend(self.waiting.pop_front().map(|(_, sender)| sender));
        }
        let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
        let count = released.len().min(COMMIT_DELETIONS_MAX);
        work.released = released.drain(..count).collect();
        work
    }

    /// Takes back what could not be saved. Messages are not: whoever published them is told, and publishes them again.
    pub(super) fn failed(&mut self, work: Work) {
        work.changed.iter().for_each(|(session, _)| session.mark_changed());
        self.removed.extend(work.removed);
        self.released.lock().unwrap_or_else(PoisonError::into_inner).extend(work.released);
    }

    /// Whether somebody waits for what is not saved yet.
    pub(super) fn is_urgent(&self) -> bool {
        !self.appended.is_empty() || !self.waiting.is_empty()
    }

    pub(super) fn has_released(&self) -> bool {
        !self.released.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.appended.is_empty()
            && self.changed.is_empty()
            && self.removed.is_empty()
            && self.released.is_empty()
            && self.waiting.is_empty()
    }

    /// The sessions that this instance must still own, with the version of the record that says so.
    pub(super) fn owners(&self) -> Vec<(Arc<str>, Version)> {
        let sessions = self.appended.iter().flat_map(|append| &append.recipients);
        let sessions = sessions.chain(self.changed.iter().map(|(session, _)| session));
        let owners = sessions.filter_map(|session| Some((Arc::clone(&session.id), session.owner()?)));
        let mut owners: Vec<_> = owners.chain(self.removed.iter().cloned()).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// Forgets a session that another instance owns now.
    pub(super) fn forget(&mut self, id: &str, version: Version) {
        let is_lost =
            |session: &Arc<Session>| *session.id == *id && session.owner().is_none_or(|owner| owner == version);
        self.changed.retain(|(session, _)| !is_lost(session));
        self.removed.retain(|(removed, owner)| **removed != *id || *owner != version);
        for append in &mut self.appended {
            append.recipients.retain(|session| !is_lost(session));
        }
    }
}
