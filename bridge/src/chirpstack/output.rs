//! Where decoded events go.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::topic::Topic;
use crate::mqtt::{PublishError, Publisher};

/// The pause before a message that the broker refused is published again.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

/// A broker, and what precedes the topics there.
pub(super) struct Output {
    pub(super) publisher: Publisher,
    pub(super) prefix: String,
}

impl Output {
    /// Publishes a message. It waits for a broker that is away or refuses, because nothing may be lost; false if the
    /// bridge stops before.
    pub(super) async fn publish(&self, topic: Topic<'_>, payload: impl Into<Bytes>) -> bool {
        let (topic, payload) = (format!("{}{topic}", self.prefix), payload.into());
        loop {
            match self.publisher.publish(topic.clone(), payload.clone()).await {
                Ok(()) => return true,
                Err(PublishError::Stopped) => return false,
                Err(error @ PublishError::TooLarge(_)) => {
                    tracing::error!(topic, bytes = payload.len(), %error, "dropped a message");
                    crate::metrics::dropped("too large");
                    return true;
                }
                Err(error @ PublishError::Refused(_)) => {
                    tracing::error!(topic, %error, "cannot publish a message: trying again");
                    sleep(REFUSED_PAUSE).await;
                }
            }
        }
    }
}
