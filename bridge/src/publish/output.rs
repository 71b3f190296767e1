//! Outputs for decoded messages.

mod refusals;

use std::{fmt, hash::Hash, time::Duration};

use bytes::Bytes;
use link::{
    mqtt::{Endpoint, PublishError, Publisher},
    redis::{StreamPublisher, StreamTarget},
};
use tokio::{sync::watch, time::Instant};

use self::refusals::Refusals;
use crate::metrics;

/// A network's topic, without a prefix.
pub trait OutputTopic: fmt::Display + Hash + Copy + Send + Sync {
    /// Returns what access control treats alike: the application, and the kind of message.
    fn kind(&self) -> String;
}

/// A message, in the form that it came in or in that of the output.
#[derive(Clone)]
pub enum Payload {
    /// JSON.
    Json(Bytes),
    /// The entry of a stream.
    Entry(EntryField),
}

/// The only field of a stream's entry.
#[derive(Clone)]
pub struct EntryField {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Bytes,
    /// The JSON of a name and a value, or why there is none.
    pub to_json: fn(&str, &[u8]) -> Result<Vec<u8>, String>,
}

/// Makes the entry of a stream of a message, or says why there is none. It gets the topic without a prefix, and the
/// JSON.
pub type ToEntry = fn(&str, &[u8]) -> Result<EntryField, String>;

/// The end of a message that was to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PublishOutcome {
    /// The other side has confirmed it.
    Published,
    /// It is not published, because it cannot be or was before: there is no point in receiving it again.
    Dropped,
    /// The bridge stopped before: it has to be received again.
    Stopped,
}

impl PublishOutcome {
    /// Returns true if the message may be acknowledged where it came from.
    pub fn is_settled(self) -> bool {
        self != Self::Stopped
    }
}

/// A broker or a stream, with the prefix of topics, or of the stream's name, there.
pub struct Output {
    target: Target,
    /// Prefix of topics, or of the stream's name.
    pub prefix: String,
}

enum Target {
    Broker { publisher: Publisher, refusals: Refusals },
    Stream { publisher: StreamPublisher, to_entry: ToEntry },
}

impl Output {
    /// Connects in the background. Messages that the broker refuses wait for `refused_wait_ms_max`, and only a part of
    /// `in_flight_max` at once.
    pub fn start(endpoint: Endpoint, prefix: String, refused_wait_ms_max: u64, in_flight_max: u16) -> Self {
        let refused_wait_max = Duration::from_millis(refused_wait_ms_max);
        let publisher = Publisher::start(endpoint, refused_wait_max);
        let refusals = Refusals::new(refused_wait_max, in_flight_max);
        Self { target: Target::Broker { publisher, refusals }, prefix }
    }

    /// Connects in the background.
    pub fn to_stream(target: StreamTarget, prefix: String, to_entry: ToEntry) -> Self {
        Self { target: Target::Stream { publisher: StreamPublisher::start(target), to_entry }, prefix }
    }

    /// Watches whether the broker or server is connected.
    pub fn connected(&self) -> watch::Receiver<bool> {
        match &self.target {
            Target::Broker { publisher, .. } => publisher.connected(),
            Target::Stream { publisher, .. } => publisher.connected(),
        }
    }

    /// Returns true if messages become entries of a stream, and not JSON.
    pub fn is_stream(&self) -> bool {
        matches!(self.target, Target::Stream { .. })
    }

    /// Publishes a message, or drops one that can never be published. It waits for a broker that is away, because
    /// nothing may be lost.
    pub async fn publish(&self, topic: impl OutputTopic, payload: impl Into<Payload>) -> PublishOutcome {
        let payload = payload.into();
        match &self.target {
            Target::Broker { publisher, refusals } => match payload.to_json() {
                Ok(json) => self.send(publisher, refusals, topic, json).await,
                Err(error) => drop_message(&topic.to_string(), payload.bytes(), &error, "no JSON"),
            },
            Target::Stream { publisher, to_entry } => match payload.to_entry(&topic, *to_entry) {
                Ok(EntryField { name, value, .. }) => {
                    let is_published = publisher.publish(name, value).await;
                    if is_published { PublishOutcome::Published } else { PublishOutcome::Stopped }
                }
                Err(error) => drop_message(&topic.to_string(), payload.bytes(), &error, "no entry"),
            },
        }
    }

    /// The same for a message that may not be writable; there is no point in receiving it again.
    pub async fn publish_written<E: fmt::Display + Send>(
        &self,
        topic: impl OutputTopic,
        payload: Result<impl Into<Payload> + Send, E>,
    ) -> PublishOutcome {
        match payload {
            Ok(payload) => self.publish(topic, payload).await,
            Err(error) => {
                tracing::error!(%topic, %error, "cannot write a message: dropped it");
                metrics::dropped("unwritable");
                PublishOutcome::Dropped
            }
        }
    }

    async fn send(
        &self,
        publisher: &Publisher,
        refusals: &Refusals,
        topic: impl OutputTopic,
        payload: Bytes,
    ) -> PublishOutcome {
        let name = format!("{}{topic}", self.prefix);
        let start = Instant::now();
        loop {
            match publisher.publish(name.clone(), topic.kind(), payload.clone()).await {
                Ok(()) => {
                    refusals.end(topic);
                    return PublishOutcome::Published;
                }
                Err(PublishError::Stopped) => return PublishOutcome::Stopped,
                Err(error @ (PublishError::TooLarge(_) | PublishError::TopicTooLong)) => {
                    return drop_message(&name, &payload, &error, "too large");
                }
                Err(error @ PublishError::ClosesConnections) => {
                    return drop_message(&name, &payload, &error, "closes connections");
                }
                Err(error @ PublishError::Refused(_)) => {
                    if !refusals.pause(topic, start, &error).await {
                        return drop_message(&name, &payload, &error, "refused");
                    }
                }
            }
        }
    }
}

impl Payload {
    /// Returns the bytes of the JSON, or of the entry's value.
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Json(bytes) | Self::Entry(EntryField { value: bytes, .. }) => bytes,
        }
    }

    /// The message as JSON, or why there is none.
    pub fn to_json(&self) -> Result<Bytes, String> {
        match self {
            Self::Json(json) => Ok(json.clone()),
            Self::Entry(EntryField { name, value, to_json }) => to_json(name, value).map(Bytes::from),
        }
    }

    fn to_entry(&self, topic: &impl OutputTopic, to_entry: ToEntry) -> Result<EntryField, String> {
        match self {
            Self::Json(json) => to_entry(&topic.to_string(), json),
            Self::Entry(entry) => Ok(entry.clone()),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(json: Bytes) -> Self {
        Self::Json(json)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(json: Vec<u8>) -> Self {
        Self::Json(json.into())
    }
}

/// Counts a message that cannot be published.
fn drop_message(topic: &str, payload: &Bytes, error: &dyn fmt::Display, reason: &'static str) -> PublishOutcome {
    tracing::error!(topic, bytes = payload.len(), %error, "dropped a message");
    metrics::dropped(reason);
    PublishOutcome::Dropped
}
