//! Messages in, decoded messages out, and all of them into history.

pub(super) mod decoder;

use std::sync::Arc;

use bridge::{
    codec::outcome::{CodecError, Run},
    metrics,
    publish::{output::PublishOutcome, republish::Republisher},
    receive::dedup::MessageKey,
    record::{Recorder, UplinkResult},
};
use bytes::Bytes;
use futures::{future::BoxFuture, join};
use link::delivery::Delivery;
use types::{Clock, Timestamp};

use self::decoder::Decoder;
use super::{
    application::topic::Topic,
    formatter::{decoded::Decoded, measurements::Measurements},
    message::{downlink::DownlinkEvent, other, report::Report, uplink::UplinkMessage},
};

/// Publishes messages, uplinks with the payload that their formatter makes of them.
pub(super) struct Uplinks {
    pub(super) decoder: Decoder,
    pub(super) republisher: Republisher,
    pub(super) recorder: Arc<Recorder>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Uplinks {
    /// Publishes a message, then acknowledges it. It is in history by then, or is counted as lost.
    pub(super) async fn handle(&self, Delivery { topic, payload, ack, .. }: Delivery) {
        let Some(topic) = Topic::parse(&topic, "") else {
            // The filter lets no other topic through.
            return ack.acknowledge().await;
        };
        let outcome = match topic.rest {
            "up" => self.uplink(topic, payload).await,
            // Published again, they would be taken for those of an application.
            "down/push" | "down/replace" => {
                metrics::event("ignored");
                PublishOutcome::Dropped
            }
            rest => match DownlinkEvent::kind(rest) {
                Some(kind) => self.downlink(topic, kind, payload).await,
                None => self.publish_unchanged(topic, payload).await,
            },
        };
        if outcome.is_settled() {
            ack.acknowledge().await;
        }
    }

    /// Publishes a message other than an uplink, which has nothing to decode.
    async fn publish_unchanged(&self, topic: Topic<'_>, payload: Bytes) -> PublishOutcome {
        let body = payload.clone();
        self.republisher.publish_recorded(topic, payload, |_| self.record_other(topic, body)).await
    }

    /// Puts a message other than an uplink into history, like an uplink.
    fn record_other(&self, topic: Topic<'_>, body: Bytes) -> BoxFuture<'static, ()> {
        let received = || other::to_received(topic.rest, body, self.clock.now());
        self.recorder.record_event((topic.application, topic.device), received)
    }

    async fn uplink(&self, topic: Topic<'_>, payload: Bytes) -> PublishOutcome {
        let mut message = match UplinkMessage::parse(&payload) {
            Ok(message) => message,
            Err(error) => {
                metrics::uplink("malformed");
                tracing::warn!(%topic, %error, "an uplink cannot be decoded: publishing it unchanged");
                return self.republisher.publish_unchanged(topic, payload.clone()).await;
            }
        };
        let key = self.republisher.dedup.key(topic, &message.identity);
        if self.republisher.dedup.contains(key) {
            metrics::uplink("duplicate");
            return PublishOutcome::Dropped;
        }
        // What its formatter sees and what history has is the same time.
        let received = *message.received_at.get_or_insert_with(|| self.clock.now());
        let mut ran = Run::default();
        if !message.is_decodable() {
            metrics::uplink("unchanged");
            let recorded = self.record((&message, topic), received, (&ran, &Ok(Decoded::default())));
            let published = self.republisher.publish_last(topic, serde_json::Result::Ok(payload.clone()), key);
            return join!(published, recorded).0;
        }
        let decoded = match self.decoder.formatter(&message, topic).await {
            Ok(formatter) => self.decoder.decode(&message, formatter.as_deref(), &mut ran).await,
            Err(error) => Err(error),
        };
        let recorded = self.record((&message, topic), received, (&ran, &decoded));
        join!(self.publish(topic, (message, &payload), decoded, key), recorded).0
    }

    /// Puts an uplink into history. What this returns resolves when it is there, or is counted as lost.
    fn record(
        &self,
        (message, topic): (&UplinkMessage<'_>, Topic<'_>),
        received: Timestamp,
        (ran, decoded): (&Run, &Result<Decoded, CodecError>),
    ) -> BoxFuture<'static, ()> {
        let (normalized, normalized_warnings) = match decoded {
            Ok(Decoded { normalized: Measurements { valid, warnings }, .. }) => (&valid[..], &warnings[..]),
            Err(_) => Default::default(),
        };
        let decoded = decoded.as_ref().map(|decoded| &decoded.uplink);
        let result = UplinkResult { ran, decoded, normalized, normalized_warnings };
        self.recorder.record((topic.application, topic.device), || message.to_received(received), &result)
    }

    /// Publishes why a formatter failed, then the message, without a decoded payload.
    async fn publish(
        &self,
        topic: Topic<'_>,
        (message, payload): (UplinkMessage<'_>, &Bytes),
        decoded: Result<Decoded, CodecError>,
        key: MessageKey,
    ) -> PublishOutcome {
        if let Err(error) = &decoded {
            let ids = message.correlation_ids();
            let report = Report::of_uplink(error, topic, &ids, self.clock.now());
            let data = self.republisher.output.publish_written(topic.with("service/data"), report.to_json()).await;
            if !data.is_settled() {
                return data;
            }
        }
        metrics::uplink(result(&decoded));
        let json = match decoded {
            Ok(decoded) if decoded.uplink.object.is_some() => message.into_json(Some(decoded)).map(Bytes::from),
            Err(error) if error.is_verdict() => message.into_json(None).map(Bytes::from),
            // What The Things Stack may have decoded itself stays.
            Ok(_) | Err(_) => Ok(payload.clone()),
        };
        self.republisher.publish_last(topic, json, key).await
    }

    /// Publishes the outcome of a downlink, with its payload decoded.
    async fn downlink(&self, topic: Topic<'_>, kind: &'static str, payload: Bytes) -> PublishOutcome {
        let Some(event) = DownlinkEvent::parse(kind, &payload) else {
            return self.publish_unchanged(topic, payload.clone()).await;
        };
        let key = self.republisher.dedup.key(topic, &payload[..]);
        if self.republisher.dedup.contains(key) {
            metrics::event("duplicate");
            return PublishOutcome::Dropped;
        }
        let json = match self.decoder.decode_downlink(&event, topic).await {
            Ok(decoded) if decoded.object.is_some() => event.into_json(decoded).map(Bytes::from),
            Ok(_) => Ok(payload.clone()),
            Err(error) => {
                let ids = event.correlation_ids();
                let report = Report::of_downlink(&error, topic, &ids, self.clock.now());
                let data = self.republisher.output.publish_written(topic.with("service/data"), report.to_json()).await;
                if !data.is_settled() {
                    return data;
                }
                Ok(payload.clone())
            }
        };
        metrics::event("forwarded");
        let recorded = self.record_other(topic, json.as_ref().unwrap_or(&payload).clone());
        join!(self.republisher.publish_last(topic, json, key), recorded).0
    }
}

/// Returns the result of an uplink, as the label of the metric.
pub(super) fn result(decoded: &Result<Decoded, CodecError>) -> &'static str {
    match decoded {
        Ok(decoded) if decoded.uplink.object.is_some() => "decoded",
        Ok(_) => "unchanged",
        Err(_) => "failed",
    }
}
