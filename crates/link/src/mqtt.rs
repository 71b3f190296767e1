//! MQTT 5, or 3.1.1 where a broker has nothing newer: messages in that are acknowledged once they are dealt with, and
//! messages out that count as published once the broker has confirmed them.
//!
//! Each connection starts anew: messages that were unfinished on the last one are repeated from here (out) or by the
//! broker (in). [`BrokerConnection`] is one of them, for clients that do both.

mod connection;
mod endpoint;
mod lost;
mod outbox;
mod packet;
mod poison_messages;
mod protocol;
mod publisher;
mod repeats;
mod subscriber;

pub use self::{
    connection::{Acknowledger, BrokerConnection},
    endpoint::{BrokerUrl, Endpoint},
    lost::Lost,
    outbox::PublishError,
    packet::{Event, PACKET_BYTES_MAX, Received, Role},
    protocol::Protocol,
    publisher::Publisher,
    subscriber::{Group, Membership, Subscriber, Subscription, end_session},
};
