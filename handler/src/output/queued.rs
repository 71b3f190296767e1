//! Outputs with a queue in the store: hands over what applications have destinations for.

use std::sync::Arc;

use outputs::{MESSAGE_BYTES_MAX, Outputs};
use serde_json::value::RawValue;
use types::Clock;

use crate::{
    metrics,
    output::{Kept, Message, Output},
};

/// Hands messages to the queues of webhooks and of other outputs.
pub struct QueuedOutput {
    outputs: Arc<Outputs>,
    clock: Arc<dyn Clock>,
}

impl QueuedOutput {
    /// An output to the destinations of each application.
    pub fn new(outputs: Arc<Outputs>, clock: Arc<dyn Clock>) -> Self {
        Self { outputs, clock }
    }
}

impl Output for QueuedOutput {
    fn publish(&self, message: Message) -> Kept {
        if self.outputs.is_without_destination(&message.app_id) {
            return Kept::at_once();
        }
        let Some(json) = body(&message) else { return Kept::at_once() };
        let bytes = json.get().len();
        let kept = self.keep(&message, json);
        if bytes <= MESSAGE_BYTES_MAX {
            return kept;
        }
        // It was dropped, and has nothing to wait for.
        let instead = message.too_large(bytes, MESSAGE_BYTES_MAX);
        let instead = instead.and_then(|instead| Some((body(&instead)?, instead)));
        instead.map_or(kept, |(body, instead)| self.keep(&instead, body))
    }
}

impl QueuedOutput {
    fn keep(&self, Message { app_id, dev_id, event }: &Message, body: Box<RawValue>) -> Kept {
        let (event, time) = (event.name().to_owned(), self.clock.now());
        let message = outputs::Message { dev_id: Some(dev_id.clone()), event, time, body };
        let stored = self.outputs.publish(app_id, message);
        match stored.is_stored() {
            true => Kept::at_once(),
            false => Kept::when(async { Ok(stored.stored().await?) }),
        }
    }
}

/// The JSON of a message; none if it cannot be written, which is logged.
fn body(Message { app_id, event, .. }: &Message) -> Option<Box<RawValue>> {
    let body = serde_json::value::to_raw_value(event).inspect_err(|error| {
        tracing::error!(%app_id, %error, event = event.name(), "cannot serialize a message");
        metrics::output_dropped(1);
    });
    body.ok()
}
