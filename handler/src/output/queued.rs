//! Outputs with a queue in the store: hands over what applications have destinations for.

use std::sync::Arc;

use api::rest::handler::{Delivery, DeliveryState, Failing};
use async_trait::async_trait;
use outputs::{DeliveryReport, MESSAGE_BYTES_MAX, MessageQuery, Outputs, Recipients, SpareRoom};
use serde_json::value::RawValue;
use types::{AppId, Clock};

use crate::{
    Error,
    output::{
        Message, Output, PublishReceipt, PublishedMessage, Receipt, Receivers, Refused, Room,
        deliveries::{delivered, identity},
    },
    status::metrics,
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

#[async_trait]
impl Output for QueuedOutput {
    fn publish(&self, message: Message) -> PublishReceipt {
        if self.outputs.is_without_destination(&message.app_id) {
            return PublishReceipt::at_once();
        }
        let Some(json) = body(&message) else { return PublishReceipt::at_once() };
        let bytes = json.get().len();
        let kept = self.store(&message, json);
        if bytes <= MESSAGE_BYTES_MAX {
            return kept;
        }
        // It was dropped, and has nothing to wait for.
        let instead = message.too_large(bytes, MESSAGE_BYTES_MAX);
        let instead = instead.and_then(|instead| Some((body(&instead)?, instead)));
        instead.map_or(kept, |(body, instead)| self.store(&instead, body))
    }

    async fn room(&self, messages: &[Message], to: &Receivers) -> Result<Room, Error> {
        let Some((app_id, to)) = self.receivers(messages, to) else { return Ok(Room::default()) };
        let messages: Vec<_> =
            messages.iter().filter_map(|message| Some(self.queued(message, body(message)?))).collect();
        let SpareRoom { receivers, messages, bytes, full } = self.outputs.spare(app_id, &messages, to).await?;
        Ok(Room { receivers, messages, bytes, full: full.into_iter().collect() })
    }

    async fn publish_again(&self, messages: &[Message], to: &Receivers) -> Result<Vec<Receipt>, Error> {
        let nobody = || vec![Receipt::default(); messages.len()];
        let Some((app_id, to)) = self.receivers(messages, to) else { return Ok(nobody()) };
        let queued: Option<Vec<_>> =
            messages.iter().map(|message| Some(self.queued(message, body(message)?))).collect();
        // What was recorded as JSON can be written as JSON.
        let Some(queued) = queued else { return Ok(nobody()) };
        let recipients = self.outputs.publish_behind(app_id, &queued, to).await?;
        Ok(recipients.into_iter().map(receipt).collect())
    }

    async fn deliveries(&self, message: &PublishedMessage) -> Result<Vec<Delivery>, Error> {
        let is_it = |queued: &outputs::OutputMessage| message.is_it(queued.body.get(), queued.time);
        let event = message.event.as_str();
        let PublishedMessage { dev_id, before, usage, .. } = message;
        let (identity, accepted_until) = (message.hash(), message.accepted_until());
        let sought = MessageQuery { dev_id, event, before: *before, identity, accepted_until, is_it: &is_it, usage };
        let reports = self.outputs.deliveries(&message.app_id, &sought).await?;
        Ok(reports.into_iter().map(delivery).collect())
    }
}

fn delivery(DeliveryReport { kind, name, state }: DeliveryReport) -> Delivery {
    let here = Delivery { kind, name, ..Delivery::default() };
    match state {
        outputs::DeliveryState::Waiting { attempts, failing, next } => {
            let failing = failing.map(|outputs::Failing { since, last, reason }| Failing { since, last, reason });
            Delivery { state: DeliveryState::Waiting, attempts, failing, next_at: next, ..here }
        }
        outputs::DeliveryState::Delivered(delivery) => delivered(here.kind, here.name, &delivery),
        outputs::DeliveryState::GivenUp { id, attempts, at, reason } => {
            let failed_at = Some(at);
            Delivery { state: DeliveryState::GivenUp, attempts, failed_at, reason, dead_letter: id, ..here }
        }
        outputs::DeliveryState::Settled { is_certain } => {
            Delivery { state: DeliveryState::Settled, is_uncertain: !is_certain, ..here }
        }
    }
}

fn receipt(Recipients { taken, full, too_large }: Recipients) -> Receipt {
    let full = full.into_iter().map(Refused::full);
    Receipt { taken, refused: full.chain(too_large.into_iter().map(Refused::too_large)).collect() }
}

impl QueuedOutput {
    /// Those of the receivers that have queues, and the application of the messages; none if there are none.
    fn receivers<'a>(&self, messages: &'a [Message], to: &'a Receivers) -> Option<(&'a AppId, outputs::Receivers<'a>)> {
        let app_id = &messages.first()?.app_id;
        let to = match to {
            Receivers::All => outputs::Receivers::All,
            Receivers::Webhook(id) => outputs::Receivers::Webhook(id),
            Receivers::Output(name) => outputs::Receivers::Operator(name),
            Receivers::Mqtt | Receivers::Topic(_) => return None,
        };
        (!self.outputs.is_without_destination(app_id)).then_some((app_id, to))
    }

    fn queued(&self, message: &Message, body: Box<RawValue>) -> outputs::OutputMessage {
        let (identity, Message { dev_id, event, .. }) = (identity(message, body.get()), message);
        let (event, time) = (event.name().to_owned(), self.clock.now());
        outputs::OutputMessage { dev_id: Some(dev_id.clone()), event, time, identity, body }
    }

    fn store(&self, message: &Message, body: Box<RawValue>) -> PublishReceipt {
        let stored = self.outputs.publish(&message.app_id, self.queued(message, body));
        match stored.is_stored() {
            true => PublishReceipt::at_once(),
            false => PublishReceipt::when(async { Ok(stored.stored().await?) }),
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
