//! Downlinks of applications in, encoded downlinks to The Things Stack.

mod failed;

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bridge::{
    codec::{
        outcome::{CodecError, Input},
        single_flight::is_final,
    },
    message::raw_object::RawObject,
    metrics,
    publish::output::{Output, PublishOutcome},
    receive::dedup::Dedup,
    record::{
        Recorder,
        event::{DOWNLINK_FAILED, ReceivedEvent},
    },
};
use bytes::Bytes;
use client::things_stack::{QueueOperation, VersionIds};
use futures::future::{BoxFuture, join};
use link::{backoff::Backoff, delivery::Delivery};
use serde_json::value::{RawValue, to_raw_value};
use server::status::ErrorChain;
use types::Clock;

use self::failed::{DOWNLINKS_MAX, FailedDownlink};
use super::{
    application::topic::Topic,
    formatter::{directory::Directory, no_formatter},
    http::webhook::ids::WebhookIds,
};

/// The port of a downlink that has none, and whose encoder chooses none, as in The Things Stack.
const DEFAULT_PORT: u8 = 1;
/// Maximum number of attempts to send a downlink to an API that does not answer. Each attempt may have queued it.
const UNANSWERED_MAX: u8 = 3;

/// Encodes the payloads of downlinks.
pub(super) struct Downlinks {
    pub(super) directory: Arc<Directory>,
    pub(super) webhooks: Arc<WebhookIds>,
    /// Output on which applications publish downlinks, and receive the reasons of failures.
    pub(super) applications: Arc<Output>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) dedup: Dedup,
    pub(super) clock: Arc<dyn Clock>,
}

/// Downlinks that can be queued.
struct Request {
    body: Vec<u8>,
    has_encoded: bool,
}

impl Downlinks {
    /// Queues downlinks, or publishes the reason of the failure; then acknowledges the message.
    pub(super) async fn handle(&self, Delivery { topic, payload, is_duplicate, ack, .. }: Delivery) {
        let parsed = Topic::parse(&topic, &self.applications.prefix);
        let Some((topic, operation)) = parsed.and_then(|topic| Some((topic, operation(topic)?))) else {
            // The filter lets no other topic through.
            return ack.acknowledge().await;
        };
        let key = self.dedup.key(topic, &payload[..]);
        // The same request twice is two downlinks, unless the broker says that it sends it again.
        if is_duplicate && self.dedup.contains(key) {
            metrics::downlink("duplicate");
            return ack.acknowledge().await;
        }
        let queued = match self.check_tenant(topic) {
            Ok(()) => match self.translate(topic, &payload).await {
                Ok(request) => self.queue(topic, operation, request).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let outcome = match queued {
            Ok(()) => PublishOutcome::Published,
            Err(error) => self.fail(topic, &payload, &error).await,
        };
        if outcome.is_settled() {
            self.dedup.add(key);
            ack.acknowledge().await;
        }
    }

    /// Refuses a topic of an application by its id alone, which may be that of several tenants.
    fn check_tenant(&self, topic: Topic<'_>) -> Result<(), CodecError> {
        let uids = self.directory.with_tenant(topic.application);
        let [first, ..] = uids.as_slice() else { return Ok(()) };
        tracing::warn!(%topic, "a downlink was refused, because its topic has no tenant");
        let topic = topic.of(first);
        Err(CodecError::Command(format!("the topic has no tenant: publish to {topic}")))
    }

    /// The request with `frm_payload` in place of each `decoded_payload`.
    async fn translate(&self, topic: Topic<'_>, payload: &[u8]) -> Result<Request, CodecError> {
        let malformed = |error: serde_json::Error| {
            CodecError::Command(format!("the message is not a JSON object with `downlinks`: {error}"))
        };
        let mut message = RawObject::parse(payload).map_err(malformed)?;
        let Some(downlinks) = message.raw("downlinks").map(|downlinks| downlinks.get().to_owned()) else {
            return Err(CodecError::Command("`downlinks` is missing: it must be an array".to_owned()));
        };
        let items: Vec<&RawValue> = serde_json::from_str(&downlinks).map_err(malformed)?;
        if items.len() > DOWNLINKS_MAX {
            let count = items.len();
            return Err(CodecError::Command(format!("it has {count} downlinks: at most {DOWNLINKS_MAX} are allowed")));
        }
        let (mut translated, mut has_encoded) = (Vec::with_capacity(items.len()), false);
        for item in items {
            let downlink = RawObject::parse(item.get().as_bytes()).map_err(malformed)?;
            if downlink.has("decoded_payload") && !downlink.has("frm_payload") {
                translated.push(self.encode(topic, downlink).await?);
                has_encoded = true;
            } else {
                translated.push(item.to_owned());
            }
        }
        message.set("downlinks", to_raw_value(&translated).map_err(malformed)?, "");
        Ok(Request { body: serde_json::to_vec(&message).map_err(malformed)?, has_encoded })
    }

    async fn encode(&self, topic: Topic<'_>, mut downlink: RawObject<'_>) -> Result<Box<RawValue>, CodecError> {
        let failed = |error: serde_json::Error| CodecError::Command(error.to_string());
        let port = port(&downlink)?;
        let input = Input { port, time_ms: self.clock.now().as_millis(), seed: 0, variables: "" };
        let object = downlink.raw("decoded_payload").map(|object| object.get().to_owned()).unwrap_or_default();
        let none: Option<&VersionIds> = None;
        let found = self.directory.formatters(topic.application, topic.device, none).await?;
        let found = found.ok_or_else(no_formatter)?;
        let encoded = found.down()?.encode(&object, &input).await?;
        let port = encoded.port.unwrap_or(if port == 0 { DEFAULT_PORT } else { port });
        downlink.set("frm_payload", to_raw_value(&STANDARD.encode(&encoded.bytes)).map_err(failed)?, "decoded_payload");
        downlink.set("f_port", to_raw_value(&port).map_err(failed)?, "decoded_payload");
        downlink.remove("decoded_payload");
        to_raw_value(&downlink).map_err(failed)
    }

    /// Gives the downlinks to The Things Stack, however long it is away.
    async fn queue(&self, topic: Topic<'_>, operation: QueueOperation, request: Request) -> Result<(), CodecError> {
        let application = self.directory.application(topic.application)?;
        let (mut backoff, mut is_failing, mut unanswered) = (Backoff::default(), false, 0);
        loop {
            let webhook = self.webhooks.get(application);
            let target = (application.id(), webhook.as_deref(), topic.device);
            let key = application.key.current();
            let error = match self.directory.api.queue_downlinks(&key, target, operation, request.body.clone()).await {
                Ok(()) => break,
                Err(error) => error,
            };
            if is_final(&error) {
                return Err(CodecError::Command(format!("The Things Stack refused it: {error}")));
            }
            unanswered += u8::from(error.may_have_happened());
            if unanswered >= UNANSWERED_MAX {
                return Err(CodecError::Command(format!("it may be sent nevertheless, but is not repeated: {error}")));
            }
            if !is_failing {
                tracing::warn!(%topic, error = %ErrorChain(&error), "cannot queue a downlink: trying again");
            }
            is_failing = true;
            backoff.pause().await;
        }
        metrics::downlink(if request.has_encoded { "encoded" } else { "forwarded" });
        Ok(())
    }

    /// Publishes that every downlink of a request failed, because it is queued as a whole.
    async fn fail(&self, topic: Topic<'_>, payload: &[u8], error: &CodecError) -> PublishOutcome {
        metrics::downlink("refused");
        for failed in FailedDownlink::all(topic, payload, error, self.clock.now()) {
            let failed = failed.to_json().map(Bytes::from);
            let recorded = self.record(topic, failed.as_ref().cloned().unwrap_or_default(), error);
            let published = self.applications.publish_written(topic.with("down/failed"), failed);
            if !join(published, recorded).await.0.is_settled() {
                return PublishOutcome::Stopped;
            }
        }
        PublishOutcome::Published
    }

    /// Puts a downlink that failed into history. What this returns resolves when it is there, or is counted as lost.
    fn record(&self, topic: Topic<'_>, body: Bytes, error: &CodecError) -> BoxFuture<'static, ()> {
        let received = self.clock.now();
        let failure = Some(error.to_string());
        let failed = || Some(ReceivedEvent { kind: DOWNLINK_FAILED, received, body, failure });
        self.recorder.record_event((topic.application, topic.device), failed)
    }
}

fn operation(topic: Topic<'_>) -> Option<QueueOperation> {
    match topic.rest {
        "down/push" => Some(QueueOperation::Push),
        "down/replace" => Some(QueueOperation::Replace),
        _ => None,
    }
}

/// The port of a downlink; zero for none.
fn port(downlink: &RawObject<'_>) -> Result<u8, CodecError> {
    let Some(text) = downlink.raw("f_port").map(RawValue::get).filter(|text| *text != "null") else { return Ok(0) };
    text.parse().map_err(|_| CodecError::Command(format!("`f_port` is {text}: it must be a number from 1 to 255")))
}
