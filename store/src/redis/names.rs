//! The names of our keys in Redis: prefix, `{tag}`, `#`, and the part.

use crate::Key;

pub(super) struct Names(pub(super) String);

impl Names {
    /// Entries, index, expiry and version of the key's tag.
    pub(super) fn tag(&self, key: &Key) -> [String; 4] {
        ["entries", "index", "expiry", "version"].map(|part| format!("{}{}#{part}", self.0, key.tag()))
    }

    pub(super) fn bucket(&self, key: &Key) -> String {
        format!("{}{}#bucket/{}", self.0, key.tag(), key.path())
    }

    /// A key about the store itself.
    pub(super) fn own(&self, name: &str) -> String {
        format!("{}{{d:store}}#{name}", self.0)
    }
}
