//! Where downlinks go that clients publish.

use async_trait::async_trait;
use bytes::Bytes;
use types::{AppId, DevId};

/// A downlink as a client published it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedDownlink {
    /// The client's application.
    pub app_id: AppId,
    /// The device that it is for.
    pub dev_id: DevId,
    /// Supposedly JSON.
    pub body: Bytes,
    /// Whether it may have been published before others that were accepted already.
    pub is_late: bool,
    /// Whether it comes again if it is refused.
    pub offer: Offer,
}

/// Whether a downlink that is refused comes again, by no decision of its client. While it does, no event says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// No: the client is told.
    #[default]
    Once,
    /// If another attempt may succeed.
    Again,
    /// Only if it could not be kept: all attempts that may fail have failed.
    Last,
}

/// Why a downlink was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownlinkRefusal {
    /// It could not be kept; the client may send it again.
    Unavailable,
    /// Something is broken here, and probably still is at the next attempt.
    Failed,
    /// There is no such device.
    UnknownDevice,
    /// It breaks a rule.
    Invalid,
}

impl DownlinkRefusal {
    /// Whether another attempt may succeed, once something else has changed.
    pub fn may_succeed_later(self) -> bool {
        self == Self::Unavailable
    }

    /// Whether a downlink comes again that was offered like this.
    pub fn comes_again(self, offer: Offer) -> bool {
        match offer {
            Offer::Once => false,
            Offer::Again => self.may_succeed_later() || self == Self::Failed,
            Offer::Last => self.may_succeed_later(),
        }
    }
}

/// What is done about a downlink that is accepted.
pub type Accepted<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Accepts downlinks.
#[async_trait]
pub trait DownlinkSink: Send + Sync {
    /// Returns when the downlink is kept, or the event is that tells the application why not; none does if it comes
    /// again. The client's PUBACK follows. Calls `accepted` as soon as that is certain, before anything is published about it.
    ///
    /// The downlinks of one client for one device are accepted one after the other.
    async fn accept(&self, downlink: PublishedDownlink, accepted: Accepted<'_>) -> Result<(), DownlinkRefusal>;
}
