//! Where decoded messages go.

mod refusals;

use std::{fmt, time::Duration};

use bytes::Bytes;
use tokio::{sync::watch, time::Instant};

use self::refusals::Refusals;
use crate::{
    metrics,
    mqtt::{Endpoint, PublishError, Publisher},
    redis::{StreamPublisher, StreamTarget},
};

/// A network's topic, without a prefix.
pub(crate) trait OutputTopic: fmt::Display + Copy + Send + Sync {
    /// What access control treats alike: the application, and the kind of message.
    fn kind(&self) -> String;
}

/// Makes the entry of a stream of a message: its name and value, or why there is none. It gets the topic without a
/// prefix, and the payload.
pub(crate) type ToEntry = fn(&str, &[u8]) -> Result<(String, Vec<u8>), String>;

/// A broker or a stream, and what precedes topics, or the name of the stream, there.
pub(crate) struct Output {
    target: Target,
    pub(crate) prefix: String,
}

enum Target {
    Broker { publisher: Publisher, refusals: Refusals },
    Stream { publisher: StreamPublisher, to_entry: ToEntry },
}

impl Output {
    /// Connects in the background. Messages that the broker refuses wait for `refused_wait_max`, and only a part of
    /// `in_flight_max` at once.
    pub(crate) fn start(endpoint: Endpoint, prefix: String, refused_wait_max: Duration, in_flight_max: u16) -> Self {
        let publisher = Publisher::start(endpoint, refused_wait_max);
        let refusals = Refusals::new(refused_wait_max, in_flight_max);
        Self { target: Target::Broker { publisher, refusals }, prefix }
    }

    /// Connects in the background.
    pub(crate) fn to_stream(target: StreamTarget, prefix: String, to_entry: ToEntry) -> Self {
        Self { target: Target::Stream { publisher: StreamPublisher::start(target), to_entry }, prefix }
    }

    /// Whether the broker or server is connected, now and as it changes.
    pub(crate) fn connected(&self) -> watch::Receiver<bool> {
        match &self.target {
            Target::Broker { publisher, .. } => publisher.connected(),
            Target::Stream { publisher, .. } => publisher.connected(),
        }
    }

    /// Publishes a message, or drops one that can never be published. It waits for a broker that is away, because
    /// nothing may be lost; false if the bridge stops before.
    pub(crate) async fn publish(&self, topic: impl OutputTopic, payload: impl Into<Bytes>) -> bool {
        let payload = payload.into();
        match &self.target {
            Target::Broker { publisher, refusals } => self.send(publisher, refusals, topic, payload).await,
            Target::Stream { publisher, to_entry } => match to_entry(&topic.to_string(), &payload) {
                Ok((name, value)) => publisher.publish(name, value).await,
                Err(error) => drop_message(&topic.to_string(), &payload, &error, "no entry"),
            },
        }
    }

    /// The same for a message whose JSON may not be writable, which does not happen; there is no point in receiving it
    /// again.
    pub(crate) async fn publish_json(&self, topic: impl OutputTopic, json: serde_json::Result<Vec<u8>>) -> bool {
        match json {
            Ok(json) => self.publish(topic, json).await,
            Err(error) => {
                tracing::error!(%topic, %error, "cannot write a message: dropped it");
                metrics::dropped("unwritable");
                true
            }
        }
    }

    async fn send(&self, publisher: &Publisher, refusals: &Refusals, topic: impl OutputTopic, payload: Bytes) -> bool {
        let name = format!("{}{topic}", self.prefix);
        let start = Instant::now();
        loop {
            match publisher.publish(name.clone(), topic.kind(), payload.clone()).await {
                Ok(()) => {
                    refusals.end(topic);
                    return true;
                }
                Err(PublishError::Stopped) => return false,
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

/// Counts a message that cannot be published. It may be acknowledged: there is no point in receiving it again.
fn drop_message(topic: &str, payload: &Bytes, error: &dyn fmt::Display, reason: &'static str) -> bool {
    tracing::error!(topic, bytes = payload.len(), %error, "dropped a message");
    metrics::dropped(reason);
    true
}
