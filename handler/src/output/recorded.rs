//! Puts events into history when they are published. Uplinks are recorded where they are decoded, with more.

use std::sync::Arc;

use api::rest::handler::Delivery;
use futures::future::BoxFuture;
use history::{History, Kind, Loss, NewRecord, RecordId};
use types::Clock;

use super::{Message, Output, PublishReceipt, PublishedMessage, Receipts, Receivers, Room};
use crate::Error;

/// An output whose messages are recorded, too.
pub struct RecordedOutput {
    /// Publishes them.
    pub output: Arc<dyn Output>,
    /// Keeps them.
    pub history: Arc<History>,
    /// Clock for the time of publication.
    pub clock: Arc<dyn Clock>,
}

impl Output for RecordedOutput {
    fn publish(&self, message: Message) -> PublishReceipt {
        let recorded = self.record(&message);
        let kept = self.output.publish(message);
        // An event counts as published also if it could not be recorded.
        kept.and(PublishReceipt::when(async {
            _ = recorded.await;
            Ok(())
        }))
    }

    fn room<'a>(&'a self, messages: &'a [Message], to: &'a Receivers) -> BoxFuture<'a, Result<Room, Error>> {
        self.output.room(messages, to)
    }

    /// They are recorded already.
    fn publish_again<'a>(&'a self, messages: &'a [Message], to: &'a Receivers) -> Receipts<'a> {
        self.output.publish_again(messages, to)
    }

    fn deliveries<'a>(&'a self, message: &'a PublishedMessage) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        self.output.deliveries(message)
    }
}

impl RecordedOutput {
    fn record(&self, message: &Message) -> impl Future<Output = Result<RecordId, Loss>> + Send + use<> {
        let Message { app_id, dev_id, event } = message;
        let kind = Kind::Event(event.name().to_owned());
        // Events of the handler's own are always written.
        let body = serde_json::to_string(event).unwrap_or_default();
        let result = if body == "null" { "" } else { &body };
        self.history.append(&NewRecord { result, ..NewRecord::new(app_id, dev_id, &kind, self.clock.now()) })
    }
}
