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
    dedup::MessageKey,
    delivery::Delivery,
    metrics,
    outcome::{CodecError, Decoded},
    republish::Republisher,
};

/// Publishes events, uplinks with the object that their codec makes of them.
pub(super) struct Uplinks {
    pub(super) decoder: Decoder,
    pub(super) republisher: Republisher,
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
            _ => self.republisher.publish_unchanged(topic, &payload).await,
        };
        if is_done {
            ack.acknowledge().await;
        }
    }

    async fn uplink(&self, topic: Topic<'_>, payload: &[u8]) -> bool {
        let event = match UplinkEvent::parse(payload) {
            Ok(event) => event,
            Err(error) => {
                metrics::uplink("malformed");
                tracing::warn!(%topic, %error, "an uplink cannot be decoded: publishing it unchanged");
                return self.republisher.publish_unchanged(topic, payload).await;
            }
        };
        let key = match &event.deduplication_id {
            Some(id) => self.republisher.dedup.key(&topic.to_string(), id),
            None => self.republisher.dedup.key(&topic.to_string(), payload),
        };
        if self.republisher.dedup.contains(key) {
            metrics::uplink("duplicate");
            return true;
        }
        if !event.is_decodable() {
            metrics::uplink("unchanged");
            return self.republisher.publish_last(topic, Ok(payload.to_vec()), key).await;
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
            && !self.republisher.output.publish_json(topic.with("event/log"), log).await
        {
            return false;
        }
        self.republisher.publish_last(topic, event, key).await
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
}
