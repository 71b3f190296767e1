//! An event as it came in: JSON from a broker, a protocol buffer from a stream.

use bridge::{metrics, publish::output::Payload};
use futures::future::BoxFuture;
use link::delivery::{Ack, Delivery};

/// An event that came in.
pub(crate) struct Incoming {
    pub(crate) topic: String,
    pub(crate) payload: Payload,
    pub(crate) ack: Ack,
}

/// Works on events that are JSON: those of a stream are converted.
pub(crate) fn in_json(
    work: impl Fn(Delivery) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> impl Fn(Incoming) -> BoxFuture<'static, ()> + Send + Sync + 'static {
    move |Incoming { topic, payload, ack }| match payload.to_json() {
        Ok(payload) => work(Delivery { topic, payload, is_duplicate: false, is_late: false, ack }),
        Err(error) => {
            tracing::warn!(topic, error, "dropped an event that cannot be read");
            metrics::event("malformed");
            Box::pin(ack.acknowledge())
        }
    }
}

/// Works on events that a broker sent.
pub(crate) fn received(
    work: impl Fn(Incoming) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> impl Fn(Delivery) -> BoxFuture<'static, ()> + Send + Sync + 'static {
    move |Delivery { topic, payload, ack, .. }| work(Incoming { topic, payload: payload.into(), ack })
}
