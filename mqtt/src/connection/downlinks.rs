//! Takes the downlinks that clients publish.

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
    /// True if it may have been published before others that were already accepted.
    pub is_late: bool,
    /// Retries after a refusal.
    pub offer: Offer,
}

/// Retries of a refused downlink by its source, not by its client. No event reports a refusal that is retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// None: the client is told.
    #[default]
    Once,
    /// If another attempt may succeed.
    Again,
    /// Only if it could not be kept: all attempts that may fail have failed.
    Last,
}

/// Reasons for refusing a downlink.
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
    /// Returns true if another attempt may succeed, once something else has changed.
    pub fn may_succeed_later(self) -> bool {
        self == Self::Unavailable
    }

    /// Returns true if a downlink offered like this is retried after the refusal.
    pub fn comes_again(self, offer: Offer) -> bool {
        match offer {
            Offer::Once => false,
            Offer::Again => self.may_succeed_later() || self == Self::Failed,
            Offer::Last => self.may_succeed_later(),
        }
    }
}

/// Action that runs when a downlink is accepted.
pub type Accepted<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Accepts downlinks.
#[async_trait]
pub trait DownlinkSink: Send + Sync {
    /// Returns when the downlink is kept, or the event is that tells the application why not; none does if it comes
    /// again. The client's PUBACK follows. Calls `accepted` as soon as that is certain, before anything is published
    /// about it.
    ///
    /// The downlinks of one client for one device are accepted one after the other.
    async fn accept(&self, downlink: PublishedDownlink, accepted: Accepted<'_>) -> Result<(), DownlinkRefusal>;
}
