//! Outputs with a queue in the store: hands over what applications have destinations for.

use std::sync::Arc;

use outputs::Outputs;
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
    fn publish(&self, Message { app_id, dev_id, event }: Message) -> Kept {
        if self.outputs.is_without_destination(&app_id) {
            return Kept::at_once();
        }
        let name = event.name().to_owned();
        let body = match serde_json::value::to_raw_value(&event) {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(%app_id, %error, event = name, "cannot serialize a message");
                metrics::output_dropped(1);
                return Kept::at_once();
            }
        };
        let message = outputs::Message { dev_id: Some(dev_id), event: name, time: self.clock.now(), body };
        let stored = self.outputs.publish(&app_id, message);
        match stored.is_stored() {
            true => Kept::at_once(),
            false => Kept::when(async { Ok(stored.stored().await?) }),
        }
    }
}
