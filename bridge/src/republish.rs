//! Publishes what came from a network, each message once.

use std::sync::Arc;

use crate::{
    dedup::{Dedup, MessageKey},
    metrics,
    output::{Output, OutputTopic},
};

/// Publishes messages, and drops copies of those that were published a short time ago.
pub(crate) struct Republisher {
    pub(crate) output: Arc<Output>,
    pub(crate) dedup: Dedup,
}

impl Republisher {
    /// Publishes a message that has nothing to decode; whether it may be acknowledged.
    pub(crate) async fn publish_unchanged(&self, topic: impl OutputTopic, payload: &[u8]) -> bool {
        let key = self.dedup.key(&topic.to_string(), payload);
        if self.dedup.contains(key) {
            metrics::event("duplicate");
            return true;
        }
        metrics::event("forwarded");
        self.publish_last(topic, Ok(payload.to_vec()), key).await
    }

    /// Publishes the last of the messages that one becomes, after which a copy of that one is a duplicate.
    pub(crate) async fn publish_last(
        &self,
        topic: impl OutputTopic,
        json: serde_json::Result<Vec<u8>>,
        key: MessageKey,
    ) -> bool {
        let is_published = self.output.publish_json(topic, json).await;
        if is_published {
            self.dedup.add(key);
        }
        is_published
    }
}
