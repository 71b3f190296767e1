//! Hands over what the broker says of its own accord.

use std::sync::Arc;

use amqprs::{
    Ack, BasicProperties, Cancel, Close, CloseChannel, Nack, Return,
    callbacks::{ChannelCallback, ConnectionCallback},
    channel::Channel,
    connection::Connection,
    error::Error,
};
use async_trait::async_trait;

use super::confirms::{Confirmation, Confirms};

/// Hands over what the broker says of the messages of a channel.
pub(super) struct ChannelListener(pub(super) Arc<Confirms>);

impl Drop for ChannelListener {
    /// The client drops this when the channel has ended, for whatever reason.
    fn drop(&mut self) {
        self.0.finish();
    }
}

#[async_trait]
impl ChannelCallback for ChannelListener {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<(), Error> {
        self.0.closing(close.reply_code(), close.reply_text());
        self.0.finish();
        Ok(())
    }

    async fn cancel(&mut self, _: &Channel, _: Cancel) -> Result<(), Error> {
        Ok(())
    }

    async fn flow(&mut self, _: &Channel, active: bool) -> Result<bool, Error> {
        Ok(active)
    }

    async fn publish_ack(&mut self, _: &Channel, ack: Ack) {
        self.0.resolve(ack.delivery_tag(), ack.mutiple(), &Confirmation::Acknowledged);
    }

    async fn publish_nack(&mut self, _: &Channel, nack: Nack) {
        self.0.resolve(nack.delivery_tag(), nack.multiple(), &Confirmation::Rejected);
    }

    async fn publish_return(&mut self, _: &Channel, _: Return, properties: BasicProperties, _: Vec<u8>) {
        if let Some(id) = properties.message_id() {
            self.0.returned(id);
        }
    }
}

/// Notes why the broker closes the connection. The end of its channel follows.
pub(super) struct ConnectionListener(pub(super) Arc<Confirms>);

#[async_trait]
impl ConnectionCallback for ConnectionListener {
    async fn close(&mut self, _: &Connection, close: Close) -> Result<(), Error> {
        self.0.closing(close.reply_code(), close.reply_text());
        Ok(())
    }

    async fn blocked(&mut self, _: &Connection, _: String) {}

    async fn unblocked(&mut self, _: &Connection) {}

    async fn secret_updated(&mut self, _: &Connection) {}
}
