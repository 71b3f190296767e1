//! Outputs, and the messages and events that the handler publishes through them.

mod again;
mod deliveries;
pub mod mqtt;
pub mod queued;
mod recorded;
mod repeated;
pub(crate) mod rooms;
mod settings;

use std::sync::Arc;

use api::rest::handler::Delivery;
use async_trait::async_trait;
use futures::future::BoxFuture;
use serde::Serialize;
use types::{Activation, AppId, DevId, DeviceEvent, DownlinkEvent, DownlinkSentEvent, ErrorEvent, SilentEvent, Uplink};

pub use self::{
    again::{Receipt, Receivers, Refused, Room},
    deliveries::{PublishedMessage, delivered, identity, unkept},
    recorded::RecordedOutput,
    repeated::RepeatedEvent,
    settings::OutputSettings,
};
use crate::Error;

/// A message for the subscribers of an application.
#[derive(Clone, Debug)]
pub struct Message {
    /// The application that the message belongs to.
    pub app_id: AppId,
    /// The device that the message is about.
    pub dev_id: DevId,
    /// Event that the message reports.
    pub event: Event,
}

/// Content of a message. It serializes to the JSON of v2.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// A device sent an uplink.
    Up(Box<Uplink>),
    /// A payload function failed, gave a warning, or refused an uplink.
    UpError(ErrorEvent),
    /// A device joined.
    Activation(Activation),
    /// A device could not join.
    ActivationError(Activation),
    /// A downlink was queued for its device.
    DownlinkScheduled(DownlinkEvent),
    /// A downlink was sent to its device.
    DownlinkSent(Box<DownlinkSentEvent>),
    /// A device acknowledged a downlink.
    DownlinkAck(DownlinkEvent),
    /// A downlink could not be queued, or not be sent.
    DownlinkError(DownlinkEvent),
    /// A device was created; without details if its join request created it.
    Create(Option<DeviceEvent>),
    /// A device was updated.
    Update(DeviceEvent),
    /// A device was deleted.
    Delete,
    /// A device has sent nothing for a time.
    Silent(Box<SilentEvent>),
    /// One of these events, except an uplink, is sent again.
    Repeated(RepeatedEvent),
}

impl Event {
    /// The topic of such messages, without application and device.
    pub fn topic(&self) -> &'static str {
        match self {
            Self::Up(_) => "up",
            Self::UpError(_) => "events/up/errors",
            Self::Activation(_) => "events/activations",
            Self::ActivationError(_) => "events/activations/errors",
            Self::DownlinkScheduled(_) => "events/down/scheduled",
            Self::DownlinkSent(_) => "events/down/sent",
            Self::DownlinkAck(_) => "events/down/acks",
            Self::DownlinkError(_) => "events/down/errors",
            Self::Create(_) => "events/create",
            Self::Update(_) => "events/update",
            Self::Delete => "events/delete",
            Self::Silent(_) => "events/silent",
            Self::Repeated(event) => event.topic(),
        }
    }

    /// Returns its name in logs, outputs and history, such as `up` or `down/sent`.
    pub fn name(&self) -> &'static str {
        let topic = self.topic();
        topic.strip_prefix("events/").unwrap_or(topic)
    }
}

impl Message {
    /// Returns the size of its JSON in bytes.
    pub(crate) fn bytes(&self) -> usize {
        // What cannot be written is refused where it should be sent.
        serde_json::to_vec(&self.event).map_or(0, |json| json.len())
    }

    /// Logs that an output cannot take this message of `bytes` bytes, and returns an error event for the application.
    /// None for events, which nobody awaits as they do uplinks.
    pub(crate) fn too_large(&self, bytes: usize, bytes_max: usize) -> Option<Self> {
        let Self { app_id, dev_id, event } = self;
        tracing::warn!(
            %app_id, %dev_id, event = event.name(), bytes, bytes_max,
            "a message is too large for an output and was dropped: have the payload functions return less"
        );
        let Event::Up(_) = event else { return None };
        let error = format!(
            "The uplink is missing: its message has {bytes} bytes, and there may be {bytes_max}. Have the payload \
             functions return less"
        );
        let event = Event::UpError(ErrorEvent { error, ..ErrorEvent::default() });
        Some(Self { app_id: app_id.clone(), dev_id: dev_id.clone(), event })
    }
}

/// Publishes messages.
#[async_trait]
pub trait Output: Send + Sync {
    /// Publishes a message without waiting.
    ///
    /// Await the returned [`PublishReceipt`] before telling a client that the message is accepted.
    fn publish(&self, message: Message) -> PublishReceipt;

    /// Returns the room for such messages of one application, behind live messages, in those receivers that get them.
    /// By default there are no receivers.
    async fn room(&self, _messages: &[Message], _to: &Receivers) -> Result<Room, Error> {
        Ok(Room::default())
    }

    /// Publishes messages of one application again, in order, to those of the receivers that have room for them
    /// behind live messages. Returns the receivers that took each message, once it is stored there; by default none.
    async fn publish_again(&self, messages: &[Message], _to: &Receivers) -> Result<Vec<Receipt>, Error> {
        Ok(vec![Receipt::default(); messages.len()])
    }

    /// Says what became of a message at each receiver that gets such messages, as far as that is known. By default
    /// there are no receivers.
    async fn deliveries(&self, _message: &PublishedMessage) -> Result<Vec<Delivery>, Error> {
        Ok(Vec::new())
    }
}

/// Publishes each message through all of several outputs.
pub struct AllOutputs(pub Vec<Arc<dyn Output>>);

#[async_trait]
impl Output for AllOutputs {
    fn publish(&self, message: Message) -> PublishReceipt {
        let kept = self.0.iter().map(|output| output.publish(message.clone()));
        kept.fold(PublishReceipt::at_once(), PublishReceipt::and)
    }

    async fn room(&self, messages: &[Message], to: &Receivers) -> Result<Room, Error> {
        let mut all = Room::default();
        for output in &self.0 {
            all.add(output.room(messages, to).await?);
        }
        Ok(all)
    }

    async fn publish_again(&self, messages: &[Message], to: &Receivers) -> Result<Vec<Receipt>, Error> {
        let mut all = vec![Receipt::default(); messages.len()];
        for output in &self.0 {
            let receipts = output.publish_again(messages, to).await?;
            all.iter_mut().zip(receipts).for_each(|(all, receipt)| all.add(receipt));
        }
        Ok(all)
    }

    async fn deliveries(&self, message: &PublishedMessage) -> Result<Vec<Delivery>, Error> {
        let mut all = Vec::new();
        for output in &self.0 {
            all.extend(output.deliveries(message).await?);
        }
        Ok(all)
    }
}

/// Resolves when a message is stored for all subscribers that get it after a restart too.
#[must_use = "a message may be lost until it is kept"]
pub struct PublishReceipt(Option<BoxFuture<'static, Result<(), Error>>>);

impl PublishReceipt {
    /// For messages that need not be stored.
    pub fn at_once() -> Self {
        Self(None)
    }

    /// For messages that `storing` stores.
    pub fn when(storing: impl Future<Output = Result<(), Error>> + Send + 'static) -> Self {
        Self(Some(Box::pin(storing)))
    }

    /// Returns true if there is nothing to wait for.
    pub(crate) fn is_stored(&self) -> bool {
        self.0.is_none()
    }

    /// Resolves when both are stored.
    fn and(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(another)) => Self::when(async {
                let (one, another) = futures::join!(one, another);
                one.and(another)
            }),
            (one, another) => Self(one.or(another)),
        }
    }

    /// For messages that nobody has been promised, or with others that are waited for.
    pub fn forget(self) {}

    /// Waits until the message is stored.
    pub async fn wait(self) -> Result<(), Error> {
        match self.0 {
            Some(storing) => storing.await,
            None => Ok(()),
        }
    }
}
