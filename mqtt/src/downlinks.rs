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
}

/// Why a downlink was not accepted; the client may send it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownlinkRefusal {
    /// The application has too many in progress.
    Busy,
    /// It could not be kept.
    Unavailable,
}

/// Accepts downlinks.
#[async_trait]
pub trait DownlinkSink: Send + Sync {
    /// Returns when the downlink is kept, or an event has told the application why not. The client's PUBACK follows.
    ///
    /// The downlinks of one client are accepted one after the other.
    async fn accept(&self, downlink: PublishedDownlink) -> Result<(), DownlinkRefusal>;
}
