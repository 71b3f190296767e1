//! A broker that others run, in place of an embedded one: messages out that it has to confirm, and messages in that are
//! acknowledged once they are dealt with. Several processes may share it.

mod connection;
mod publisher;
mod subscription;
mod turns;

pub use self::{
    connection::BrokerConnection,
    publisher::{BrokerMessage, BrokerPublisher, Confirmation, Offline, Unconfirmed},
    subscription::{Attempt, BrokerReceiver, BrokerSubscription, ReceivedMessage},
    turns::{Turn, Turns},
};
