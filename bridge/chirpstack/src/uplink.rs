//! Events in, decoded events out, and all of them into history.

use std::sync::Arc;

use bridge::{
    codec::outcome::{CodecError, Decoded, Run},
    metrics,
    publish::{
        output::{Payload, PublishOutcome},
        republish::Republisher,
    },
    receive::dedup::MessageKey,
    record::{Recorder, UplinkResult},
};
use futures::{future::BoxFuture, join};
use types::{Clock, Timestamp};

use super::{
    codec::decoder::Decoder,
    event::{
        UplinkEvent,
        incoming::Incoming,
        log_event::{Code, LogEvent},
        other,
        topic::Topic,
    },
};

/// Publishes events, uplinks with the object that their codec makes of them.
pub(super) struct Uplinks {
    pub(super) decoder: Decoder,
    pub(super) republisher: Republisher,
    pub(super) recorder: Arc<Recorder>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Uplinks {
    /// Publishes an event, then acknowledges it. It is in history by then, or is counted as lost.
    pub(super) async fn handle(&self, Incoming { topic, payload, ack }: Incoming) {
        let Some(topic) = Topic::parse(&topic, "") else {
            // The filter lets no other topic through.
            return ack.acknowledge().await;
        };
        let outcome = match topic.event() {
            Some("up") => self.uplink(topic, payload).await,
            _ => {
                let record = |payload: &Payload| self.record_other(topic, payload);
                self.republisher.publish_recorded(topic, payload, record).await
            }
        };
        if outcome.is_settled() {
            ack.acknowledge().await;
        }
    }

    /// Puts another event into history, like an uplink.
    fn record_other(&self, topic: Topic<'_>, payload: &Payload) -> BoxFuture<'static, ()> {
        self.recorder.record_event((topic.application_id, topic.dev_eui), || {
            // An entry that has no JSON is published to no broker either.
            other::to_received(topic.event()?, payload.to_json().ok()?, self.clock.now())
        })
    }

    async fn uplink(&self, topic: Topic<'_>, payload: Payload) -> PublishOutcome {
        let mut event = match UplinkEvent::read(&payload) {
            Ok(event) => event,
            Err(error) => {
                metrics::uplink("malformed");
                tracing::warn!(%topic, %error, "an uplink cannot be decoded: publishing it unchanged");
                return self.republisher.publish_unchanged(topic, payload.clone()).await;
            }
        };
        let key = match &event.deduplication_id {
            Some(id) => self.republisher.dedup.key(topic, id),
            None => self.republisher.dedup.key(topic, payload.bytes()),
        };
        if self.republisher.dedup.contains(key) {
            metrics::uplink("duplicate");
            return PublishOutcome::Dropped;
        }
        // What its codec sees and what history has is the same time.
        let received = *event.time.get_or_insert_with(|| self.clock.now());
        let mut ran = Run::default();
        if !event.is_decodable() {
            metrics::uplink("unchanged");
            let recorded = self.record((&event, topic), received, (&ran, &Ok(Decoded::default())));
            let published = self.republisher.publish_last(topic, serde_json::Result::Ok(payload.clone()), key);
            return join!(published, recorded).0;
        }
        let decoded = self.decoder.decode(&event, topic, &mut ran).await;
        let recorded = self.record((&event, topic), received, (&ran, &decoded));
        join!(self.publish(topic, (event, &payload), decoded, key), recorded).0
    }

    /// Puts an uplink into history. What this returns resolves when it is there, or is counted as lost.
    fn record(
        &self,
        (event, topic): (&UplinkEvent<'_>, Topic<'_>),
        received: Timestamp,
        (ran, decoded): (&Run, &Result<Decoded, CodecError>),
    ) -> BoxFuture<'static, ()> {
        let result = UplinkResult { ran, decoded: decoded.as_ref(), normalized: &[], normalized_warnings: &[] };
        self.recorder.record((topic.application_id, topic.dev_eui), || event.to_received(received), &result)
    }

    /// Publishes what the codec said, then the event: in this order, as ChirpStack does it.
    async fn publish(
        &self,
        topic: Topic<'_>,
        (event, payload): (UplinkEvent<'_>, &Payload),
        decoded: Result<Decoded, CodecError>,
        key: MessageKey,
    ) -> PublishOutcome {
        let log = self.log_event(&event, &decoded);
        let is_stream = self.republisher.output.is_stream();
        let event = match decoded {
            Ok(Decoded { object: Some(object), .. }) => event.into_payload(Some(object), is_stream),
            Err(error) if error.is_verdict() => event.into_payload(None, is_stream),
            // What ChirpStack may have decoded itself stays.
            Ok(_) | Err(_) => Ok(payload.clone()),
        };
        if let Some(log) = log
            && !self.republisher.output.publish_written(topic.with("event/log"), log).await.is_settled()
        {
            return PublishOutcome::Stopped;
        }
        self.republisher.publish_last(topic, event, key).await
    }

    /// The event that reports a failure or warnings; none for a codec that has nothing to say.
    fn log_event(
        &self,
        event: &UplinkEvent<'_>,
        decoded: &Result<Decoded, CodecError>,
    ) -> Option<serde_json::Result<Vec<u8>>> {
        metrics::uplink(match decoded {
            Err(_) => "failed",
            Ok(Decoded { object: Some(_), .. }) => "decoded",
            Ok(_) => "unchanged",
        });
        if decoded.as_ref().is_ok_and(|decoded| decoded.warnings.is_empty()) {
            return None;
        }
        let (now, info) = (self.clock.now(), event.device_info());
        let log = match decoded {
            Err(error) => LogEvent::failure(error, Code::UplinkCodec, now, info.as_deref()),
            Ok(decoded) => LogEvent::warnings(&decoded.warnings, now, info.as_deref()),
        };
        Some(log.about(event.deduplication_id.as_deref()).to_json())
    }
}
