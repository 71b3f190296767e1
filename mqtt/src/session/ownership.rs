//! Ownership of a session: if it is stored, and if this process may still write for it.

use std::sync::Arc;

use parking_lot::Mutex;
use store::Version;

/// The ownership of one session. It outlives the session, as long as messages in the log name it as a recipient.
#[derive(Debug)]
pub(crate) struct Ownership {
    /// The session's id.
    pub(crate) id: Arc<str>,
    owner: Mutex<Owner>,
}

#[derive(Clone, Debug)]
enum Owner {
    /// The session is not stored.
    Nobody,
    /// This process, by the record of this version.
    Own { version: Version, recipient: Arc<str> },
    /// Another process, which decides about the session's messages.
    Other,
    /// The session was deleted.
    Deleted,
}

impl Ownership {
    pub(crate) fn new(id: Arc<str>) -> Self {
        Self { id, owner: Mutex::new(Owner::Nobody) }
    }

    /// The version of the record that makes this process the owner; none if it is not.
    pub(crate) fn version(&self) -> Option<Version> {
        match *self.owner.lock() {
            Owner::Own { version, .. } => Some(version),
            _ => None,
        }
    }

    /// Returns the name of the session among the recipients in the log; none if this process does not own it.
    pub(crate) fn recipient(&self) -> Option<Arc<str>> {
        match &*self.owner.lock() {
            Owner::Own { recipient, .. } => Some(Arc::clone(recipient)),
            _ => None,
        }
    }

    /// Returns true if another process owns the session.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(*self.owner.lock(), Owner::Other)
    }

    pub(crate) fn own(&self, version: Version, recipient: Arc<str>) {
        *self.owner.lock() = Owner::Own { version, recipient };
    }

    pub(crate) fn lose(&self) {
        *self.owner.lock() = Owner::Other;
    }

    pub(crate) fn delete(&self) {
        *self.owner.lock() = Owner::Deleted;
    }
}
