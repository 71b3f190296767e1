//! MQTT 5, or 3.1.1 where a broker has nothing newer: messages in that are acknowledged once they are dealt with, and
//! messages out that count as published once the broker has confirmed them.
//!
//! Each connection starts with a new client of the library: what was unfinished on the last one is repeated from here
//! (out) or by the broker (in), so neither depends on what the library keeps.

mod connection;
mod endpoint;
mod outbox;
mod publisher;
mod settings;
mod subscriber;
mod suspects;
mod url;

pub use self::settings::MqttSettings;
pub(crate) use self::{
    endpoint::Endpoint,
    outbox::PublishError,
    publisher::Publisher,
    subscriber::{Group, Membership, Subscriber, Subscription, end_session},
};
