//! Messages in, decoded messages out.

use std::sync::Arc;

use types::Clock;

use super::{decoded::Decoded, decoder::Decoder, report::Report, topic::Topic, uplink_message::UplinkMessage};
use crate::{
    dedup::{Dedup, MessageKey},
    delivery::Delivery,
    metrics,
    outcome::CodecError,
    output::Output,
};

/// Publishes messages, uplinks with the payload that their formatter makes of them.
pub(super) struct Uplinks {
    pub(super) decoder: Decoder,
    pub(super) output: Arc<Output>,
    pub(super) dedup: Dedup,
    pub(super) clock: Arc<dyn Clock>,
}

impl Uplinks {
    /// Publishes a message, then acknowledges it.
    pub(super) async fn handle(&self, Delivery { topic, payload, ack, .. }: Delivery) {
        let Some(topic) = Topic::parse(&topic, "") else {
            // The filter lets no other topic through.
            return ack.acknowledge().await;
        };
        let is_done = match topic.rest {
            "up" => self.uplink(topic, &payload).await,
            // Published again, they would be taken for those of an application.
            "down/push" | "down/replace" => {
                metrics::event("ignored");
                true
            }
            _ => self.other(topic, &payload).await,
        };
        if is_done {
            ack.acknowledge().await;
        }
    }

    /// Publishes a message that has nothing to decode; whether it may be acknowledged.
    async fn other(&self, topic: Topic<'_>, payload: &[u8]) -> bool {
        let key = self.dedup.key(&topic.to_string(), payload);
        if self.dedup.contains(key) {
            metrics::event("duplicate");
            return true;
        }
        metrics::event("forwarded");
        self.publish_last(topic, payload.to_vec(), key).await
    }

    async fn uplink(&self, topic: Topic<'_>, payload: &[u8]) -> bool {
        let message = match UplinkMessage::parse(payload) {
            Ok(message) => message,
            Err(error) => {
                metrics::uplink("malformed");
                tracing::warn!(%topic, %error, "an uplink cannot be decoded: publishing it unchanged");
                return self.other(topic, payload).await;
            }
        };
        let key = self.dedup.key(&topic.to_string(), &message.identity);
        if self.dedup.contains(key) {
            metrics::uplink("duplicate");
            return true;
        }
        if !message.is_decodable() {
            metrics::uplink("unchanged");
            return self.publish_last(topic, payload.to_vec(), key).await;
        }
        let decoded = match self.decoder.formatter(&message, topic).await {
            Ok(formatter) => self.decoder.decode(&message, formatter.as_deref()).await,
            Err(error) => Err(error),
        };
        self.publish(topic, (message, payload), decoded, key).await
    }

    /// Publishes why a formatter failed, then the message, without a decoded payload.
    async fn publish(
        &self,
        topic: Topic<'_>,
        (message, payload): (UplinkMessage<'_>, &[u8]),
        decoded: Result<Decoded, CodecError>,
        key: MessageKey,
    ) -> bool {
        if let Err(error) = &decoded {
            let ids = message.correlation_ids();
            let report = Report::new(error, topic, &ids, self.clock.now());
            if !self.publish_json(topic.with("service/data"), report.to_json()).await {
                return false;
            }
        }
        metrics::uplink(result(&decoded));
        let json = match decoded {
            Ok(decoded) if decoded.uplink.object.is_some() => message.into_json(Some(decoded)),
            Err(error) if error.is_verdict() => message.into_json(None),
            // What The Things Stack may have decoded itself stays.
            Ok(_) | Err(_) => Ok(payload.to_vec()),
        };
        match json {
            Ok(json) => self.publish_last(topic, json, key).await,
            Err(error) => unwritable(topic, &error),
        }
    }

    async fn publish_json(&self, topic: Topic<'_>, json: serde_json::Result<Vec<u8>>) -> bool {
        match json {
            Ok(json) => self.output.publish(topic, json).await,
            Err(error) => unwritable(topic, &error),
        }
    }

    /// Publishes the last message about an uplink, after which a copy of it is a duplicate.
    async fn publish_last(&self, topic: Topic<'_>, payload: Vec<u8>, key: MessageKey) -> bool {
        let is_published = self.output.publish(topic, payload).await;
        if is_published {
            self.dedup.add(key);
        }
        is_published
    }
}

/// What became of an uplink, for the metric.
pub(super) fn result(decoded: &Result<Decoded, CodecError>) -> &'static str {
    match decoded {
        Ok(decoded) if decoded.uplink.object.is_some() => "decoded",
        Ok(_) => "unchanged",
        Err(_) => "failed",
    }
}

/// Counts a message whose JSON cannot be written, which does not happen; there is no point in receiving it again.
pub(super) fn unwritable(topic: Topic<'_>, error: &serde_json::Error) -> bool {
    tracing::error!(%topic, %error, "cannot write a message: dropped it");
    metrics::dropped("unwritable");
    true
}
