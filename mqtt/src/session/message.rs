//! Messages, and what a subscriber gets of them.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use mqtt5_protocol::Properties;
use parking_lot::Mutex;
use store::Key;

use crate::session::{
    budget::{ApplicationMemory, MessageMemory},
    durable::LogRecord,
    ownership::Ownership,
};

/// A message that the handler publishes to the subscribers of an application, with QoS 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// It starts with the application's id: other topics reach nobody.
    pub topic: String,
    /// JSON.
    pub payload: Bytes,
}

/// Endings of the v2 names for `events/down/scheduled` and `events/down/sent`. Only filters that spell them out
/// match: with wildcards, clients would get each event twice.
const NAMES_OF_V2: [&str; 2] = ["/events/downlink/scheduled", "/events/downlink/sent"];

/// The two qualities of service that subscribers get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeliveryQos {
    /// QoS 0.
    AtMostOnce,
    /// QoS 1.
    AtLeastOnce,
}

/// A message, shared by all who get it.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) topic: String,
    pub(crate) payload: Bytes,
    pub(crate) qos: DeliveryQos,
    /// MQTT 5 properties from the publisher, to pass on to subscribers.
    pub(crate) properties: Option<Box<Properties>>,
    /// The number of the session that published it.
    pub(crate) publisher: Option<u64>,
    /// Counts its memory, once it waits for somebody.
    pub(crate) _memory: Option<MessageMemory>,
}

impl Message {
    /// Counts its memory until it is dropped.
    pub(crate) fn counted(self, memory: &Arc<ApplicationMemory>) -> Self {
        Self { _memory: Some(memory.reserve_message(self.bytes())), ..self }
    }

    /// Returns the levels of its topic that a filter must name, instead of matching them with wildcards; the last one
    /// is 0.
    pub(crate) fn named_levels(&self) -> Range<usize> {
        named_levels(&self.topic)
    }

    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        let properties = self.properties.as_ref().map_or(0, |properties| properties.encoded_len());
        size_of::<Self>() + self.topic.len() + self.payload.len() + properties * PROPERTY_BYTES
    }
}

/// Returns the levels of a topic that a filter must name, instead of matching them with wildcards; the last one is 0.
/// They are the names of v2, and the levels between application and `devices` where messages are sent again.
pub(crate) fn named_levels(topic: &str) -> Range<usize> {
    let below = topic.split_once('/').map_or("", |(_, below)| below);
    if below.starts_with("devices/") {
        return if NAMES_OF_V2.iter().any(|name| topic.ends_with(name)) { 0..3 } else { 0..0 };
    }
    let Some((prefix, rest)) = below.split_once("/devices/") else { return 0..0 };
    let after = 1 + rest.split('/').count();
    after..after + prefix.split('/').count()
}

impl From<Publication> for Message {
    fn from(Publication { topic, payload }: Publication) -> Self {
        Self { topic, payload, qos: DeliveryQos::AtLeastOnce, properties: None, publisher: None, _memory: None }
    }
}

/// About how much memory a byte of encoded properties takes: an empty user property has five, and two strings.
const PROPERTY_BYTES: usize = 16;

/// A message for one subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) message: Arc<Message>,
    pub(crate) qos: DeliveryQos,
    /// The identifiers that the client gave to the matching subscriptions.
    pub(crate) subscription_ids: Vec<u32>,
    /// Its place in the log, if it is stored.
    pub(crate) stored: Option<Arc<LoggedMessage>>,
}

impl Delivery {
    /// About how much memory it takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.message.bytes()
    }
}

impl From<LogRecord> for Message {
    fn from(record: LogRecord) -> Self {
        let LogRecord { topic, payload, properties, .. } = record;
        Self { topic, payload, qos: DeliveryQos::AtLeastOnce, properties, publisher: None, _memory: None }
    }
}

/// Messages in the log that no session needs any more.
pub(crate) type Released = Arc<Mutex<Vec<Release>>>;

/// A message in the log that can be deleted, unless one of its recipients belongs to another process by now.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) key: Key,
    pub(crate) recipients: Vec<Arc<Ownership>>,
}

/// A message in the log of its application. It is deleted there when the last session that needs it lets it go.
#[derive(Debug)]
pub(crate) struct LoggedMessage {
    pub(crate) number: u64,
    pub(crate) key: Key,
    pub(crate) recipients: Vec<Arc<Ownership>>,
    released: Released,
    /// True if the message must stay in the log when this is dropped.
    is_disowned: AtomicBool,
}

impl LoggedMessage {
    pub(crate) fn new(number: u64, key: Key, recipients: Vec<Arc<Ownership>>, released: Released) -> Self {
        Self { number, key, recipients, released, is_disowned: AtomicBool::new(false) }
    }

    /// Leaves the message in the log.
    pub(crate) fn disown(&self) {
        self.is_disowned.store(true, Ordering::Relaxed);
    }
}

impl Drop for LoggedMessage {
    fn drop(&mut self) {
        if !self.is_disowned.load(Ordering::Relaxed) {
            let release = Release { key: self.key.clone(), recipients: std::mem::take(&mut self.recipients) };
            self.released.lock().push(release);
        }
    }
}
