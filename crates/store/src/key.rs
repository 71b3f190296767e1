//! Keys, and the tags that group them.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::Error;

/// Maximum length of a tag's id, in bytes.
const ID_BYTES_MAX: usize = 128;
/// Maximum length of a key's path, in bytes.
const PATH_BYTES_MAX: usize = 512;
/// Maximum length of a tag's kind, in bytes.
const KIND_BYTES_MAX: usize = 8;

/// The first part of a key; keys with the same tag can be committed together.
///
/// A Redis Cluster uses it as the hash tag and keeps all its keys on one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Tag(Arc<str>);

/// A tag and a path under it.
///
/// The path has up to 512 bytes of visible ASCII; an empty path is a prefix of every key of the tag.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key {
    text: Arc<str>,
    path_at: usize,
}

impl Tag {
    /// The tag of an application: `{a:x}`.
    pub fn application(app_id: &str) -> Result<Self, Error> {
        Self::named("a", app_id)
    }

    /// The tag of a gateway: `{g:x}`.
    pub fn gateway(gateway_id: &str) -> Result<Self, Error> {
        Self::named("g", gateway_id)
    }

    /// The tag of a user: `{u:x}`.
    pub fn user(user_id: &str) -> Result<Self, Error> {
        Self::named("u", user_id)
    }

    /// The tag of a service: `{d:x}`.
    pub fn service(name: &str) -> Result<Self, Error> {
        Self::named("d", name)
    }

    /// The tag of anything else: `{kind:id}`.
    ///
    /// A kind has 1 to 8 lowercase letters, an id 1 to 128 letters, digits and `-_.:@+`.
    pub fn named(kind: &str, id: &str) -> Result<Self, Error> {
        if !(1..=KIND_BYTES_MAX).contains(&kind.len()) || !kind.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err(Error::invalid("kind of tag", kind, "1 to 8 lowercase letters are allowed"));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@+".contains(&byte);
        if !(1..=ID_BYTES_MAX).contains(&id.len()) || !id.bytes().all(allowed) {
            return Err(Error::invalid("id of tag", id, "1 to 128 letters, digits and -_.:@+ are allowed"));
        }
        Ok(Self(format!("{{{kind}:{id}}}").into()))
    }

    /// The tag with its braces.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the kind of thing that the tag belongs to, such as `a` for an application.
    pub fn kind(&self) -> &str {
        self.parts().0
    }

    /// Returns the part that distinguishes the tag from others of its kind, such as the id of an application.
    pub fn id(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        self.0.trim_start_matches('{').trim_end_matches('}').split_once(':').unwrap_or_default()
    }
}

impl TryFrom<String> for Tag {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let parts = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).and_then(|tag| tag.split_once(':'));
        let (kind, id) = parts.ok_or_else(|| Error::invalid("tag", &text, "it must be a kind and an id in braces"))?;
        Self::named(kind, id)
    }
}

impl From<Tag> for String {
    fn from(tag: Tag) -> Self {
        tag.as_str().to_owned()
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Key {
    /// A key under `tag`.
    pub fn new(tag: &Tag, path: &str) -> Result<Self, Error> {
        if path.len() > PATH_BYTES_MAX || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::invalid("path of key", path, "up to 512 visible ASCII characters are allowed"));
        }
        Ok(Self { text: format!("{tag}{path}").into(), path_at: tag.0.len() })
    }

    /// The tag and the path: `{a:x}device/dev-1`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The tag with its braces: `{a:x}`.
    pub fn tag(&self) -> &str {
        &self.text[..self.path_at]
    }

    /// The path: `device/dev-1`.
    pub fn path(&self) -> &str {
        &self.text[self.path_at..]
    }

    /// The key with the same tag and another path.
    pub(crate) fn sibling(&self, path: &str) -> Self {
        Self { text: format!("{}{path}", self.tag()).into(), path_at: self.path_at }
    }
}

impl TryFrom<String> for Key {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let parts = text.strip_prefix('{').and_then(|text| text.split_once('}'));
        let named = parts.and_then(|(tag, path)| tag.split_once(':').map(|(kind, id)| (kind, id, path)));
        let (kind, id, path) = named.ok_or_else(|| Error::invalid("key", &text, "it must be a tag and a path"))?;
        Self::new(&Tag::named(kind, id)?, path)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.as_str().to_owned()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.text)
    }
}
