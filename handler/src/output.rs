//! Where messages go once the handler is done with them, and what they are called there.

pub mod memory;
pub mod mqtt;

use std::fmt;

use bytes::Bytes;
use types::{AppId, DevId};

/// A message to whoever listens to an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The application that it belongs to, and nobody else.
    pub app_id: AppId,
    /// The device that it is about.
    pub dev_id: DevId,
    /// What sort of message it is.
    pub topic: Topic,
    /// JSON.
    pub body: Bytes,
}

/// What sort of message one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// An uplink.
    Up,
    /// An uplink could not be processed as it should.
    UpErrors,
    /// A device joined.
    Activations,
    /// A device could not join.
    ActivationErrors,
    /// A downlink was put into the queue.
    DownScheduled,
    /// A downlink was sent.
    DownSent,
    /// A device acknowledged a downlink.
    DownAcks,
    /// A downlink could not be sent.
    DownErrors,
    /// A device was registered.
    Create,
    /// A device was changed.
    Update,
    /// A device was removed.
    Delete,
}

impl Topic {
    /// The end of the message's name, after the device.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::UpErrors => "events/up/errors",
            Self::Activations => "events/activations",
            Self::ActivationErrors => "events/activations/errors",
            Self::DownScheduled => "events/down/scheduled",
            Self::DownSent => "events/down/sent",
            Self::DownAcks => "events/down/acks",
            Self::DownErrors => "events/down/errors",
            Self::Create => "events/create",
            Self::Update => "events/update",
            Self::Delete => "events/delete",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Takes messages and brings them on.
pub trait Output: Send + Sync {
    /// Takes a message at once; one that does not fit any more is counted and dropped, never waited for.
    fn publish(&self, message: Message);
}
