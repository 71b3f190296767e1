//! Where decoded events go.

mod refusals;

use bytes::Bytes;
use tokio::time::Instant;

use self::refusals::Refusals;
use super::{settings::ChirpStackSettings, topic::Topic};
use crate::mqtt::{PublishError, Publisher};

/// A broker, and what precedes the topics there.
pub(super) struct Output {
    pub(super) publisher: Publisher,
    pub(super) prefix: String,
    refusals: Refusals,
}

impl Output {
    pub(super) fn new(publisher: Publisher, prefix: String, settings: &ChirpStackSettings) -> Self {
        Self { publisher, prefix, refusals: Refusals::new(settings) }
    }

    /// Publishes a message, or drops one that can never be published. It waits for a broker that is away, because
    /// nothing may be lost; false if the bridge stops before.
    pub(super) async fn publish(&self, topic: Topic<'_>, payload: impl Into<Bytes>) -> bool {
        let (name, payload) = (format!("{}{topic}", self.prefix), payload.into());
        let start = Instant::now();
        loop {
            match self.publisher.publish(name.clone(), payload.clone()).await {
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
