//! Puts events into history when they are published. Uplinks are recorded where they are decoded, with more.

use std::sync::Arc;

use api::rest::handler::Delivery;
use async_trait::async_trait;
use history::{History, Kind, Loss, NewRecord, Outcome, RecordId};
use types::Clock;

use super::{Event, Message, Output, PublishReceipt, PublishedMessage, Receipt, Receivers, Room};
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

#[async_trait]
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

    async fn room(&self, messages: &[Message], to: &Receivers) -> Result<Room, Error> {
        self.output.room(messages, to).await
    }

    /// They are recorded already.
    async fn publish_again(&self, messages: &[Message], to: &Receivers) -> Result<Vec<Receipt>, Error> {
        self.output.publish_again(messages, to).await
    }

    async fn deliveries(&self, message: &PublishedMessage) -> Result<Vec<Delivery>, Error> {
        self.output.deliveries(message).await
    }
}

impl RecordedOutput {
    fn record(&self, message: &Message) -> impl Future<Output = Result<RecordId, Loss>> + Send + use<> {
        let Message { app_id, dev_id, event } = message;
        let kind = Kind::Event(event.name().to_owned());
        // Events of the handler's own are always written.
        let body = serde_json::to_string(event).unwrap_or_default();
        let result = if body == "null" { "" } else { &body };
        let failure = failure(event);
        let outcome = if failure.is_some() { Outcome::Failed } else { Outcome::NotConverted };
        let new = NewRecord::new(app_id, dev_id, &kind, self.clock.now());
        self.history.append(&NewRecord { outcome, result, failure, ..new })
    }
}

/// The reason why a downlink or a join failed. None for other events: an uplink that failed is a record of its own.
fn failure(event: &Event) -> Option<&str> {
    match event {
        Event::ActivationError(activation) => Some(activation.error.as_deref().unwrap_or_default()),
        Event::DownlinkError(downlink) => Some(downlink.error.as_deref().unwrap_or_default()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use types::{Activation, DownlinkEvent, ErrorEvent};

    use super::*;

    #[test]
    fn downlinks_and_joins_fail_and_what_is_said_about_an_uplink_does_not() {
        let error = Some("no".to_owned());
        let join = Activation { error: error.clone(), ..Activation::default() };
        let downlink = DownlinkEvent { error, ..DownlinkEvent::default() };
        for event in [Event::ActivationError(join), Event::DownlinkError(downlink)] {
            assert_eq!(failure(&event), Some("no"), "{event:?}");
        }
        let uplink = ErrorEvent { error: "no".to_owned(), ..ErrorEvent::default() };
        let (join, downlink) = (Activation::default(), DownlinkEvent::default());
        for event in [Event::UpError(uplink), Event::Activation(join), Event::DownlinkScheduled(downlink)] {
            assert_eq!(failure(&event), None, "{event:?}");
        }
    }
}
