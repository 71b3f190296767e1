//! Sends a message to an exchange, and waits until the broker has confirmed it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use server::ledger::Owner;
use tokio::time::timeout;
use types::Random;

use super::{
    confirms::{Confirmation, End},
    connection::{AmqpConnection, AmqpServer},
    settings::AmqpSettings,
};
use crate::{
    Error, Settings,
    message::Outgoing,
    sender::{
        SendError, SendReceipt, Sender,
        link::{Link, OutputName},
    },
};

/// Sends to one exchange.
pub(crate) struct AmqpSender {
    link: Link<AmqpConnection>,
    timeout: Duration,
}

impl AmqpSender {
    /// Checks the settings, and connects in the background.
    pub(crate) fn start(settings: &AmqpSettings, delivery: &Settings, random: Arc<dyn Random>) -> Result<Self, Error> {
        let server = AmqpServer::new(settings)?;
        let link = Link::start(server, OutputName { kind: "amqp", name: settings.name.clone() }, random);
        Ok(Self { link, timeout: Duration::from_millis(delivery.timeout_ms.max(1)) })
    }
}

#[async_trait]
impl Sender for AmqpSender {
    async fn ready(&self, _owner: &Owner) {
        while let Some(connection) = self.link.usable(|connection| !connection.is_ended()).await {
            connection.settled().await;
            if connection.is_ready() {
                return;
            }
        }
    }

    async fn send(&self, message: &Outgoing) -> Result<SendReceipt, SendError> {
        let unreachable = |reason: &str| Err(SendError::Unreachable(reason.to_owned()));
        let Some(connection) = self.link.current().filter(AmqpConnection::is_ready) else {
            return unreachable("the broker is not connected");
        };
        // What the broker does not take now says nothing about the message, except for its size.
        match timeout(self.timeout, connection.publish(message)).await {
            Ok(Ok(Confirmation::Acknowledged)) => Ok(SendReceipt::default()),
            Ok(Ok(Confirmation::Rejected)) => unreachable("the broker did not take the message: a queue may be full"),
            Ok(Ok(Confirmation::Returned)) => unreachable("no queue is bound for the message"),
            Ok(Ok(Confirmation::Ended(end))) if is_too_large(&end, message) => Err(SendError::refused(end.text)),
            Ok(Ok(Confirmation::Ended(end))) => unreachable(&end.text),
            Ok(Err(error)) => unreachable(&error.to_string()),
            Err(_) => unreachable("the broker did not confirm the message in time"),
        }
    }
}

/// Returns true if the broker has closed the channel because this message is larger than it takes.
fn is_too_large(end: &End, message: &Outgoing) -> bool {
    let size = format!("message size {} ", message.message.body.get().len());
    end.text.starts_with("PRECONDITION_FAILED") && end.text.contains(&size)
}
