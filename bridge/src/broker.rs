//! A broker that others run, in place of an embedded one: messages out that it has to confirm, and messages in that are
//! acknowledged once they are dealt with. Several processes may share it.

mod connection;
mod leases;
mod publisher;
mod subscription;

pub use self::{
    connection::BrokerConnection,
    leases::{ReceiveLease, ReceiveLeases},
    publisher::{BrokerMessage, BrokerPublisher, Confirmation, Offline, Unconfirmed},
    subscription::{Attempt, BrokerReceiver, BrokerSubscription, ReceivedMessage},
};
