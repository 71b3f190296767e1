//! Events in, decoded events out.

use std::sync::Arc;

use types::Clock;

use super::{
    decoder::Decoder,
    event::UplinkEvent,
    log_event::{Code, LogEvent},
    topic::Topic,
};
use crate::{
    dedup::{Dedup, MessageKey},
    delivery::Delivery,
    metrics,
    outcome::{CodecError, Decoded},
    output::Output,
};

/// Publishes events, uplinks with the object that their codec makes of them.
pub(super) struct Uplinks {
    pub(super) decoder: Decoder,
    pub(super) output: Arc<Output>,
    pub(super) dedup: Dedup,
    pub(super) clock: Arc<dyn Clock>,
}

impl Uplinks {
    /// Publishes an event, then acknowledges it.
    pub(super) async fn handle(&self, Delivery { topic, payload, ack, .. }: Delivery) {
        let Some(topic) = Topic::parse(&topic, "") else {
            // The filter lets no other topic through.
            return ack.acknowledge().await;
        };
        let is_done = match topic.event() {
            Some("up") => self.uplink(topic, &payload).await,
            _ => self.other(topic, &payload).await,
        };
        if is_done {
            ack.acknowledge().await;
        }
    }

    /// Publishes an event that has nothing to decode; whether it may be acknowledged.
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
        let event = match UplinkEvent::parse(payload) {
            Ok(event) => event,
            Err(error) => {
                metrics::uplink("malformed");
                tracing::warn!(%topic, %error, "an uplink cannot be decoded: publishing it unchanged");
                return self.other(topic, payload).await;
            }
        };
        let key = match &event.deduplication_id {
            Some(id) => self.dedup.key(&topic.to_string(), id),
            None => self.dedup.key(&topic.to_string(), payload),
        };
        if self.dedup.contains(key) {
            metrics::uplink("duplicate");
            return true;
        }
        if !event.is_decodable() {
            metrics::uplink("unchanged");
            return self.publish_last(topic, payload.to_vec(), key).await;
        }
        let decoded = self.decoder.decode(&event, topic).await;
        self.publish(topic, (event, payload), decoded, key).await
    }

    /// Publishes what the codec said, then the event: in this order, as ChirpStack does it.
    async fn publish(
        &self,
        topic: Topic<'_>,
        (event, payload): (UplinkEvent<'_>, &[u8]),
        decoded: Result<Decoded, CodecError>,
        key: MessageKey,
    ) -> bool {
        let log = self.log_event(&event, &decoded).map(|log| log.to_json());
        let event = match decoded {
            Ok(Decoded { object: Some(object), .. }) => event.into_json(Some(object)),
            Err(error) if error.is_verdict() => event.into_json(None),
            // What ChirpStack may have decoded itself stays.
            Ok(_) | Err(_) => Ok(payload.to_vec()),
        };
        if let Some(log) = log
            && !self.publish_json(topic.with("event/log"), log).await
        {
            return false;
        }
        match event {
            Ok(event) => self.publish_last(topic, event, key).await,
            Err(error) => unwritable(topic, &error),
        }
    }

    /// The event that reports a failure or warnings; none for a codec that has nothing to say.
    fn log_event<'a>(&self, event: &'a UplinkEvent<'_>, decoded: &Result<Decoded, CodecError>) -> Option<LogEvent<'a>> {
        let (now, info) = (self.clock.now(), event.device_info());
        let log = match decoded {
            Err(error) => {
                metrics::uplink("failed");
                LogEvent::failure(error, Code::UplinkCodec, now, info)
            }
            Ok(decoded) => {
                metrics::uplink(if decoded.object.is_some() { "decoded" } else { "unchanged" });
                if decoded.warnings.is_empty() {
                    return None;
                }
                LogEvent::warnings(&decoded.warnings, now, info)
            }
        };
        Some(log.about(event.deduplication_id.as_deref()))
    }

    async fn publish_json(&self, topic: Topic<'_>, json: serde_json::Result<Vec<u8>>) -> bool {
        match json {
            Ok(json) => self.output.publish(topic, json).await,
            Err(error) => unwritable(topic, &error),
        }
    }

    /// Publishes the last message of an event, after which a copy of the event is a duplicate.
    async fn publish_last(&self, topic: Topic<'_>, payload: Vec<u8>, key: MessageKey) -> bool {
        let is_published = self.output.publish(topic, payload).await;
        if is_published {
            self.dedup.add(key);
        }
        is_published
    }
}

/// Counts an event whose JSON cannot be written, which does not happen; there is no point in receiving it again.
fn unwritable(topic: Topic<'_>, error: &serde_json::Error) -> bool {
    tracing::error!(%topic, %error, "cannot write an event: dropped it");
    metrics::dropped("unwritable");
    true
}
