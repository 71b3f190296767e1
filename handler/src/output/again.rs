//! Messages that are sent again: their receivers, and their results.

use std::collections::BTreeSet;

use types::WebhookId;

/// Selects receivers of messages that are sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// All receivers of live messages.
    All,
    /// Subscribers over MQTT, on the usual topics.
    Mqtt,
    /// Subscribers over MQTT on topics with these levels between application and `devices`. A filter has to name them:
    /// with wildcards in their place it gets nothing from the embedded broker.
    Topic(String),
    /// A webhook of the application.
    Webhook(WebhookId),
    /// The outputs of the operator with this name.
    Output(String),
}

/// Room that receivers have for messages behind the live ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Number of receivers that have room.
    pub receivers: usize,
    /// Number of messages that each of those can take.
    pub messages: usize,
    /// Bytes of messages that each of those can take.
    pub bytes: usize,
    /// The receivers that have no room now, such as `webhook my-hook`.
    pub full: BTreeSet<String>,
}

/// Recipients of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Number of receivers that took it.
    pub taken: usize,
    /// Receivers that did not.
    pub refused: Vec<Refused>,
}

/// A receiver that did not take a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Such as `webhook my-hook`.
    pub receiver: String,
    /// The answer of the receiver, or the error.
    pub reason: String,
}

impl Receivers {
    /// The levels between application and `devices` in topics over MQTT, empty for none; none if nobody gets messages
    /// over MQTT.
    pub fn mqtt_prefix(&self) -> Option<&str> {
        match self {
            Self::All | Self::Mqtt => Some(""),
            Self::Topic(prefix) => Some(prefix),
            Self::Webhook(_) | Self::Output(_) => None,
        }
    }
}

impl Room {
    /// Adds receivers. The room of each becomes the smaller of both.
    pub(crate) fn add(&mut self, other: Self) {
        if self.receivers == 0 {
            (self.messages, self.bytes) = (other.messages, other.bytes);
        } else if other.receivers > 0 {
            (self.messages, self.bytes) = (self.messages.min(other.messages), self.bytes.min(other.bytes));
        }
        self.receivers += other.receivers;
        self.full.extend(other.full);
    }
}

impl Receipt {
    pub(crate) fn add(&mut self, other: Self) {
        self.taken += other.taken;
        self.refused.extend(other.refused);
    }
}

impl Refused {
    /// A receiver whose queue has too much for anything but live messages.
    pub(crate) fn full(receiver: impl Into<String>) -> Self {
        Self { receiver: receiver.into(), reason: "its queue has room for live messages only".to_owned() }
    }

    /// A receiver that cannot take such a large message.
    pub(crate) fn too_large(receiver: impl Into<String>) -> Self {
        Self { receiver: receiver.into(), reason: "the message is too large for it".to_owned() }
    }
}
