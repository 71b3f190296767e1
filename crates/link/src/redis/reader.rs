//! Reads the entries of a stream at one moment, and changes nothing in it.

use redis::RedisError;
use types::Kind;

use super::{
    advice::{advice, is_login_refused},
    node::Node,
    settings::StreamSettings,
    stream::Stream,
};
use crate::Error;

/// Maximum number of entries per read.
const BATCH: usize = 200;

/// The entries of a stream, from the oldest one to that which was the newest at the start.
pub struct StreamReader {
    stream: Stream,
    /// Server and key, for messages.
    name: String,
    after: Option<String>,
    last: String,
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Name of its first field.
    pub name: String,
    /// Content of that field.
    pub value: Vec<u8>,
}

impl StreamReader {
    /// Connects, and asks for the newest entry.
    pub async fn open(node: &Node, key: &str) -> Result<Self, Error> {
        let name = format!("`{key}` of {}", node.url);
        // It joins no group.
        let opened = Stream::open(node, &StreamSettings::default(), key, "").await;
        let mut stream = opened.map_err(|error| unreadable(&name, error))?;
        let last = stream.last().await.map_err(|error| unreadable(&name, error))?;
        Ok(Self { stream, name, after: None, last })
    }

    /// The next entries; none at the end. Some may have left the stream meanwhile.
    pub async fn next(&mut self) -> Result<Vec<StoredEntry>, Error> {
        let read = self.stream.range(self.after.as_deref(), &self.last, BATCH).await;
        let entries = read.map_err(|error| unreadable(&self.name, error))?;
        if let Some(last) = entries.last() {
            self.after = Some(last.id.clone());
        }
        Ok(entries
            .into_iter()
            .filter_map(|entry| entry.field)
            .map(|(name, value)| StoredEntry { name, value })
            .collect())
    }
}

fn unreadable(name: &str, source: RedisError) -> Error {
    let advice = match source.code() {
        Some("NOPERM") => Some("let this user run INFO, XREVRANGE and XRANGE"),
        _ => advice(&source),
    };
    let advice = advice.map(|advice| format!(": {advice}")).unwrap_or_default();
    let kind = match source.code() {
        _ if is_login_refused(&source) => Kind::Unauthenticated,
        Some("NOPERM") => Kind::Denied,
        Some("WRONGTYPE") => Kind::Invalid,
        _ => Kind::Unavailable,
    };
    Error::Stream { kind, name: name.to_owned(), advice, source: source.into() }
}
