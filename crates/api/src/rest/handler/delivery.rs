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
    /// It neither waits nor was given up: it was delivered, or dropped as one of the oldest of a full queue, or it came
    /// before the receiver was set up.
    Settled,
}

/// The fate of a message at each receiver.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryList {
    /// The receivers that get such messages now.
    pub deliveries: Vec<Delivery>,
}
