//! Where decoded messages go.

mod refusals;

use std::{fmt, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use self::refusals::Refusals;
use crate::mqtt::{Endpoint, PublishError, Publisher};

/// A network's topic, without a prefix.
pub(crate) trait OutputTopic: fmt::Display + Copy + Send + Sync {
    /// What access control treats alike: the application, and the kind of message.
    fn kind(&self) -> String;
}

/// A broker, and what precedes the topics there.
pub(crate) struct Output {
    pub(crate) publisher: Publisher,
    pub(crate) prefix: String,
    refusals: Refusals,
}

impl Output {
    /// Connects in the background. Messages that the broker refuses wait for `refused_wait_max`, and only a part of
    /// `in_flight_max` at once.
    pub(crate) fn start(endpoint: Endpoint, prefix: String, refused_wait_max: Duration, in_flight_max: u16) -> Self {
        let publisher = Publisher::start(endpoint, refused_wait_max);
        Self { publisher, prefix, refusals: Refusals::new(refused_wait_max, in_flight_max) }
    }

    /// Publishes a message, or drops one that can never be published. It waits for a broker that is away, because
    /// nothing may be lost; false if the bridge stops before.
    pub(crate) async fn publish(&self, topic: impl OutputTopic, payload: impl Into<Bytes>) -> bool {
        let (name, payload) = (format!("{}{topic}", self.prefix), payload.into());
        let start = Instant::now();
        loop {
            match self.publisher.publish(name.clone(), topic.kind(), payload.clone()).await {
                Ok(()) => {
                    self.refusals.end(topic);
                    return true;
                }
                Err(PublishError::Stopped) => return false,
                Err(error @ PublishError::TooLarge(_)) => return drop_message(&name, &payload, &error, "too large"),
                Err(error @ PublishError::ClosesConnections) => {
                    return drop_message(&name, &payload, &error, "closes connections");
                }
                Err(error @ PublishError::Refused(_)) => {
                    if !self.refusals.pause(topic, start, &error).await {
                        return drop_message(&name, &payload, &error, "refused");
                    }
                }
            }
        }
    }
}

/// Counts a message that the broker does not take. It may be acknowledged: there is no point in receiving it again.
fn drop_message(topic: &str, payload: &Bytes, error: &PublishError, reason: &'static str) -> bool {
    tracing::error!(topic, bytes = payload.len(), %error, "dropped a message");
    crate::metrics::dropped(reason);
    true
}
