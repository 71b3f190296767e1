//! The trait that each kind of output implements, sending one message, and its implementations.

pub(crate) mod amqp;
pub(crate) mod kafka;
mod link;
pub(crate) mod redis;
pub(crate) mod webhook;

use std::time::Duration;

use async_trait::async_trait;
use server::ledger::Owner;

use crate::message::Outgoing;

/// Sends messages to one kind of receiver.
#[async_trait]
pub(crate) trait Sender: Send + Sync {
    /// Waits for what every message needs, such as a connection. Messages are read from the queue only then.
    async fn ready(&self, _owner: &Owner) {}

    /// Sends a message; returns when the receiver has confirmed it. Messages of one device come one after the other.
    async fn send(&self, message: &Outgoing) -> Result<SendReceipt, SendError>;
}

/// The receiver's confirmation of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendReceipt {
    /// The HTTP status, if it answers with one.
    pub(crate) status: Option<u16>,
}

/// Reasons why a message was not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    /// The receiver will never take this message.
    #[error("{reason}")]
    Refused {
        reason: String,
        /// The HTTP status, if it answered with one.
        status: Option<u16>,
    },
    /// The receiver got it, and could not handle it, or did not answer in time. Too many of these end the attempts.
    #[error("{reason}")]
    Failed {
        reason: String,
        /// The HTTP status, if it answered with one.
        status: Option<u16>,
        /// Pause that the receiver asks for.
        wait: Option<Duration>,
    },
    /// The receiver was not reached, or takes nothing at the moment, which says nothing about the message.
    #[error("{0}")]
    Unreachable(String),
}

impl SendError {
    /// A refusal without an HTTP status.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), status: None }
    }

    /// The HTTP status, if the receiver answered with one.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } | Self::Failed { status, .. } => *status,
            Self::Unreachable(_) => None,
        }
    }
}
