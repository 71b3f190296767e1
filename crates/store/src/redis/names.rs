//! The names of our keys in Redis: prefix, `{tag}`, `#`, and the part.

use crate::{Key, Tag};

pub(super) struct Names(pub(super) String);

impl Names {
    /// Entries, index, expiry, version and bytes of a tag.
    pub(super) fn tag(&self, tag: &str) -> [String; 5] {
        ["entries", "index", "expiry", "version", "bytes"].map(|part| format!("{}{tag}#{part}", self.0))
    }

    /// Matches the entries of all tags, as `SCAN` takes it. A prefix has nothing that is special in a pattern.
    pub(super) fn all_entries(&self) -> String {
        format!("{}{{*}}#entries", self.0)
    }

    /// The tag whose entries have this name.
    pub(super) fn tag_of(&self, entries: &str) -> Option<Tag> {
        let tag = entries.strip_prefix(&self.0)?.strip_suffix("#entries")?;
        Tag::try_from(tag.to_owned()).ok()
    }

    pub(super) fn bucket(&self, key: &Key) -> String {
        format!("{}{}#bucket/{}", self.0, key.tag(), key.path())
    }

    /// A key about the store itself.
    pub(super) fn own(&self, name: &str) -> String {
        format!("{}{{d:store}}#{name}", self.0)
    }
}
