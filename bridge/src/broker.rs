//! A broker that others run, in place of an embedded one: messages out that it has to confirm, and messages in that are
//! acknowledged once they are dealt with. Several processes may share it.

mod connection;
mod publisher;
mod subscription;

pub use self::{
    connection::BrokerConnection,
    publisher::{BrokerMessage, BrokerPublisher, Confirmation, Unconfirmed},
    subscription::{BrokerReceiver, BrokerSubscription, ReceivedMessage},
};
