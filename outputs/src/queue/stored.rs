//! Messages as they are stored: a large body has a record of its own, which all destinations of the message share.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Entry, Key, Version};
use types::{DevId, Timestamp};

use super::sizes::Size;
use crate::{
    Error,
    destination::{self, Destination, Part, last_level},
    message::OutputMessage,
};

/// From how many bytes a body has a record of its own. A smaller one takes no more room in each queue than the names of
/// those that share it.
const SHARED_BYTES_MIN: usize = 1024;

/// A message in a queue. Earlier versions stored every message with its body.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoredMessage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dev_id: Option<DevId>,
    pub(crate) event: String,
    pub(crate) time: Timestamp,
    #[serde(default, skip_serializing_if = "has_none")]
    pub(crate) identity: u64,
    /// None if it has a record of its own; also if it is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    /// The labels of the destinations that share the body, if it has a record of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shared_by: Vec<String>,
    /// The size of that record.
    #[serde(default, skip_serializing_if = "is_zero")]
    body_bytes: usize,
}

/// A message among the dead letters.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredLetter {
    pub(super) message: StoredMessage,
    pub(super) failed_at: Timestamp,
    pub(super) attempts: u32,
    pub(super) reason: String,
}

/// A message in a queue or among the dead letters, and where it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) key: Key,
    pub(super) version: Version,
    pub(super) size: Size,
    pub(crate) message: StoredMessage,
}

fn has_none(identity: &u64) -> bool {
    *identity == 0
}

fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

impl StoredMessage {
    /// A message for these destinations, and its body if that gets a record of its own.
    pub(super) fn new<'a>(message: &'a OutputMessage, destinations: &[&Destination]) -> (Self, Option<&'a str>) {
        let OutputMessage { dev_id, event, time, identity, body } = message;
        let stored = Self {
            dev_id: dev_id.clone(),
            event: event.clone(),
            time: *time,
            identity: *identity,
            body: None,
            shared_by: Vec::new(),
            body_bytes: 0,
        };
        if body.get().len() < SHARED_BYTES_MIN {
            return (Self { body: Some(body.clone()), ..stored }, None);
        }
        let shared_by = destinations.iter().map(|destination| destination.label()).collect();
        (Self { shared_by, body_bytes: body.get().len(), ..stored }, Some(body.get()))
    }

    /// Returns true if its body has a record of its own.
    pub(super) fn is_shared(&self) -> bool {
        !self.shared_by.is_empty()
    }

    /// The labels of the destinations that share its body.
    pub(super) fn shared_by(&self) -> &[String] {
        &self.shared_by
    }

    /// The message, with the body that its record has if that is another.
    pub(super) fn with_body(&self, body: Option<&Entry>) -> Result<OutputMessage, Error> {
        let body = match (&self.body, body) {
            (Some(body), _) => body.clone(),
            (None, Some(body)) => serde_json::from_slice(&body.value)?,
            (None, None) => RawValue::from_string("null".to_owned())?,
        };
        let (dev_id, event) = (self.dev_id.clone(), self.event.clone());
        Ok(OutputMessage { dev_id, event, time: self.time, identity: self.identity, body })
    }

    /// Returns its size in the store, counted for each destination.
    pub(super) fn size(&self, key: &Key, bytes: usize) -> Size {
        Size { messages: 1, bytes: key.as_str().len() + bytes + self.body_bytes }
    }
}

impl Queued {
    /// A message in this part of a destination.
    pub(super) fn read(part: Part, entry: &Entry) -> Result<Self, Error> {
        let message: StoredMessage = match part {
            Part::Queue => serde_json::from_slice(&entry.value)?,
            Part::DeadLetters => serde_json::from_slice::<StoredLetter>(&entry.value)?.message,
        };
        Ok(Self::of(entry, message))
    }

    /// The same, to count or to remove it: then nobody reads what a damaged record says.
    pub(super) fn look_at(part: Part, entry: &Entry) -> Self {
        Self::read(part, entry).unwrap_or_else(|_| Self::of(entry, StoredMessage::default()))
    }

    /// A dead letter, and the rest of its record.
    pub(super) fn letter(entry: &Entry) -> Result<(Self, StoredLetter), Error> {
        let letter: StoredLetter = serde_json::from_slice(&entry.value)?;
        Ok((Self::of(entry, letter.message.clone()), letter))
    }

    fn of(entry: &Entry, message: StoredMessage) -> Self {
        let size = message.size(&entry.key, entry.value.len());
        Self { key: entry.key.clone(), version: entry.version, size, message }
    }

    /// The same for each attempt to deliver it.
    pub(crate) fn id(&self) -> &str {
        last_level(&self.key)
    }

    /// The record of its body; none if it has none of its own.
    pub(super) fn body(&self, destination: &Destination) -> Result<Option<Key>, Error> {
        let has_one = self.message.is_shared();
        has_one.then(|| destination::body(&destination.app_id, self.id())).transpose()
    }
}
