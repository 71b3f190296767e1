//! How keys of ours are named in Redis: prefix, `{tag}`, and after `#` what is kept there.

use crate::Key;

/// The names under one prefix.
pub(super) struct Names(pub(super) String);

impl Names {
    /// Entries, index, expiry and version of the tag that a key has.
    pub(super) fn tag(&self, key: &Key) -> [String; 4] {
        ["entries", "index", "expiry", "version"].map(|part| format!("{}{}#{part}", self.0, key.tag()))
    }

    /// Messages and due of a queue.
    pub(super) fn queue(&self, queue: &Key) -> [String; 2] {
        ["messages", "due"].map(|part| format!("{}{}#{part}/{}", self.0, queue.tag(), queue.path()))
    }

    /// The bucket of a rate limit.
    pub(super) fn bucket(&self, key: &Key) -> String {
        format!("{}{}#bucket/{}", self.0, key.tag(), key.path())
    }

    /// Something about the store itself.
    pub(super) fn own(&self, name: &str) -> String {
        format!("{}{{d:store}}#{name}", self.0)
    }

    /// What the channels of hints start with.
    pub(super) fn channels(&self) -> String {
        format!("{}hint/", self.0)
    }
}
