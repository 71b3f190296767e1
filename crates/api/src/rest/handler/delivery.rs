//! Bodies about what became of a message at the outputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Timestamp;

use super::{super::json::is_default, webhook::Failing};

/// The fate of a message at one receiver, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Delivery {
    /// `webhook`, `amqp`, `redis`, `kafka`; `mqtt` for subscribers, `broker` for the broker that others run.
    pub kind: String,
    /// Its name among those of its kind; omitted if there is only one.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// The state of the message there.
    pub state: DeliveryState,
    /// Number of times that it was sent, as far as that is known.
    #[serde(skip_serializing_if = "is_default")]
    pub attempts: u32,
    /// Attempts of which none got through, if it waits because of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
    /// When the next attempts begin, while they pause after failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// When the receiver confirmed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// The HTTP status with which a webhook confirmed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Time from the last attempt to its confirmation, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// When it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Timestamp>,
    /// The last answer to a message that was given up. Only webhooks have it: the log has those of other outputs.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// Names it among the messages that a webhook did not take.
    #[serde(skip_serializing_if = "is_default")]
    pub dead_letter: String,
    /// Number of subscribers that would get such a message now; for a broker, 1 if it is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribers: Option<usize>,
    /// True if so many messages came after it that not all were looked at.
    #[serde(skip_serializing_if = "is_default")]
    pub is_uncertain: bool,
}

/// The state of a message at a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It went to those who subscribed then. Nothing is kept of that.
    #[default]
    Unkept,
    /// It waits, or is sent again.
    Waiting,
    /// It was given up.
    GivenUp,
    /// The receiver confirmed it. The handler that delivers remembers the newest such messages of each receiver.
    Delivered,
    /// No longer known: it was delivered, or dropped as one of the oldest of a full queue, or it came before the receiver
    /// was set up.
    Settled,
}

/// The fate of a message at each receiver.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryList {
    /// The receivers that get such messages now.
    pub deliveries: Vec<Delivery>,
}

/// A message that a webhook took, or that was given up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecentDelivery {
    /// The device that it is about.
    #[serde(skip_serializing_if = "is_default")]
    pub dev_id: String,
    /// The event.
    pub event: String,
    /// When it was accepted for the webhook, a moment after it was recorded; later if it was sent again.
    pub accepted_at: Timestamp,
    /// When the receiver confirmed it, or when it was given up.
    pub at: Timestamp,
    /// True if the receiver confirmed it.
    pub is_delivered: bool,
    /// The HTTP status of the answer to the last attempt, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Number of times that it was sent.
    pub attempts: u32,
    /// Time that the last attempt took, in microseconds.
    pub duration_us: u64,
}

/// A message that waits for a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WaitingMessage {
    /// The device that it is about.
    #[serde(skip_serializing_if = "is_default")]
    pub dev_id: String,
    /// The event.
    pub event: String,
    /// When it was accepted for the webhook, a moment after it was recorded; later if it was sent again.
    pub accepted_at: Timestamp,
    /// Number of times that this handler has sent it.
    pub attempts: u32,
}

/// The newest deliveries of a webhook, and what is delivered next.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RecentDeliveryList {
    /// The deliveries that the handler remembers, the newest first.
    pub deliveries: Vec<RecentDelivery>,
    /// Messages that wait, the oldest first: at most 20. Omitted if there are none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waiting: Vec<WaitingMessage>,
    /// When the next attempts begin, if they pause after failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}
