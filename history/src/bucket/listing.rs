//! Content of a bucket: objects are named like files, below the handler that has put them there.

use std::{collections::BTreeMap, path::Path};

use object_store::ObjectMeta;

use crate::{directory::removed::Removal, sealed::name::FileName};

/// Prefix of the folders of handlers.
pub(super) const HANDLER: &str = "handler=";
/// The folder that says what was removed.
pub(super) const REMOVED: &str = "removed";

/// A sealed file in the bucket, which never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// `handler=<id>/app=<id>/day=<date>/<name>`.
    pub(crate) key: String,
    /// Its length.
    pub(crate) bytes: u64,
    /// The tag of its content, if the server has one.
    pub(crate) e_tag: Option<String>,
}

/// Content of a bucket, or of a part of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) objects: Vec<Object>,
    pub(crate) removed: Vec<Removal>,
}

impl Listing {
    /// Takes note of what a key stands for. Those that are not ours are left out.
    pub(super) fn add(&mut self, key: &str, bytes: u64, e_tag: Option<String>) {
        if key.starts_with(HANDLER) && FileName::parse(Path::new(key)).is_some() {
            self.objects.push(Object { key: key.to_owned(), bytes, e_tag });
        } else if let Some(removed) = parse_removal(key) {
            self.removed.push(removed);
        }
    }

    /// The files of one handler, by their paths in its directory, with their lengths.
    pub(crate) fn files_of(&self, handler: &str) -> BTreeMap<&str, u64> {
        let own = self.objects.iter().filter(|object| object.handler() == handler);
        own.map(|object| (object.file(), object.bytes)).collect()
    }
}

impl Object {
    /// The id of the handler that has put it there.
    pub(crate) fn handler(&self) -> &str {
        self.split().0
    }

    /// The path of the file in the handler's directory.
    pub(crate) fn file(&self) -> &str {
        self.split().1
    }

    fn split(&self) -> (&str, &str) {
        self.key.strip_prefix(HANDLER).and_then(|key| key.split_once('/')).unwrap_or_default()
    }

    /// False if an answer is about other content than that which was listed: no handler changes a file, but somebody else
    /// may have.
    pub(super) fn is_same(&self, answer: &ObjectMeta) -> bool {
        let is_other_tag = self.e_tag.iter().zip(&answer.e_tag).any(|(listed, e_tag)| bare(listed) != bare(e_tag));
        answer.size == self.bytes && !is_other_tag
    }

    /// Parses its name; none if it is not the name of a file of ours.
    pub(crate) fn name(&self) -> Option<FileName> {
        FileName::parse(Path::new(&self.key))
    }

    /// The application whose records it has.
    pub(crate) fn app_id(&self) -> Option<&str> {
        application(&self.key)
    }
}

/// A tag without what some servers and proxies add to it in one kind of answer and not in another.
fn bare(e_tag: &str) -> &str {
    e_tag.strip_prefix("W/").unwrap_or(e_tag).trim_matches('"')
}

/// The application whose records what has this key has.
pub(super) fn application(key: &str) -> Option<&str> {
    key.split_once("/app=")?.1.split_once('/').map(|(app_id, _)| app_id)
}

/// The key that says that something was removed, without content.
pub(super) fn removal_key(removal: &Removal) -> String {
    format!("{REMOVED}/{}/{}", removal.name(), removal.last)
}

fn parse_removal(key: &str) -> Option<Removal> {
    let (name, last) = key.strip_prefix(REMOVED)?.strip_prefix('/')?.split_once('/')?;
    Some(Removal::named(name, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordId;

    #[test]
    fn keys_say_whose_file_it_is_and_what_was_removed() {
        let mut listing = Listing::default();
        let removed = Removal::named("a,d", RecordId::new(17, 1, 2));
        for key in [
            "handler=h/app=a/day=2026-01-01/5-17-0-1.parquet",
            "handler=h/app=a/day=2026-01-01/other.parquet",
            "x/app=a/day=2026-01-01/5-17-0-1.parquet",
            "removed/a/nothing",
            "notes.txt",
            &removal_key(&removed),
        ] {
            listing.add(key, 7, None);
        }
        assert_eq!(listing.removed, [removed]);
        assert_eq!(listing.files_of("h"), BTreeMap::from([("app=a/day=2026-01-01/5-17-0-1.parquet", 7)]));
        assert!(listing.files_of("other").is_empty());
        assert_eq!(listing.objects[0].app_id(), Some("a"));
    }

    #[test]
    fn a_tag_is_the_same_however_a_server_writes_it() {
        let listed = Object { key: "some-key".to_owned(), bytes: 7, e_tag: Some("\"a1\"".to_owned()) };
        let answer = |size, e_tag: Option<&str>| ObjectMeta {
            location: "some-key".into(),
            last_modified: Default::default(),
            size,
            e_tag: e_tag.map(str::to_owned),
            version: None,
        };
        for same in [Some("\"a1\""), Some("a1"), Some("W/\"a1\""), None] {
            assert!(listed.is_same(&answer(7, same)), "{same:?}");
        }
        assert!(!listed.is_same(&answer(7, Some("\"a2\""))) && !listed.is_same(&answer(8, None)));
    }
}
