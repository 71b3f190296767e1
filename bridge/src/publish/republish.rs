//! Publishes what came from a network, each message once.

use std::{fmt, future::ready, sync::Arc};

use futures::{
    FutureExt,
    future::{BoxFuture, join},
};

use crate::{
    metrics,
    publish::output::{Output, OutputTopic, Payload, PublishOutcome},
    receive::dedup::{Dedup, MessageKey},
};

/// Publishes messages, and drops copies of those that were published a short time ago.
pub struct Republisher {
    /// Output of the messages.
    pub output: Arc<Output>,
    /// Those that were published.
    pub dedup: Dedup,
}

impl Republisher {
    /// Publishes a message that has nothing to decode.
    pub async fn publish_unchanged(&self, topic: impl OutputTopic, payload: impl Into<Payload>) -> PublishOutcome {
        self.publish_recorded(topic, payload, |_| ready(()).boxed()).await
    }

    /// The same, and records it unless it is a copy. What `record` returns resolves when that is done.
    pub async fn publish_recorded(
        &self,
        topic: impl OutputTopic,
        payload: impl Into<Payload>,
        record: impl FnOnce(&Payload) -> BoxFuture<'static, ()>,
    ) -> PublishOutcome {
        let payload = payload.into();
        let key = self.dedup.key(topic, payload.bytes());
        if self.dedup.contains(key) {
            metrics::event("duplicate");
            return PublishOutcome::Dropped;
        }
        metrics::event("forwarded");
        let recorded = record(&payload);
        join(self.publish_last(topic, serde_json::Result::Ok(payload), key), recorded).await.0
    }

    /// Publishes the last of the messages that one becomes, after which a copy of that one is a duplicate.
    pub async fn publish_last<E: fmt::Display + Send>(
        &self,
        topic: impl OutputTopic,
        payload: Result<impl Into<Payload> + Send, E>,
        key: MessageKey,
    ) -> PublishOutcome {
        let outcome = self.output.publish_written(topic, payload).await;
        if outcome.is_settled() {
            self.dedup.add(key);
        }
        outcome
    }
}
