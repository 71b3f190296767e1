//! A message as it came in, with a handle to acknowledge it once it is dealt with.

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

/// A message that was received.
pub struct Delivery {
    /// Its topic.
    pub topic: String,
    /// Its payload.
    pub payload: Bytes,
    /// Whether the source sent it before.
    pub is_repeated: bool,
    /// Acknowledges it.
    pub ack: Ack,
}

/// Acknowledges a message. If it is dropped instead, the source sends the message again later.
pub struct Ack {
    acknowledge: BoxFuture<'static, ()>,
    /// The place of the message among those in progress.
    _permit: OwnedSemaphorePermit,
}

impl Ack {
    pub(crate) fn new(acknowledge: impl Future<Output = ()> + Send + 'static, permit: OwnedSemaphorePermit) -> Self {
        Self { acknowledge: Box::pin(acknowledge), _permit: permit }
    }

    /// Acknowledges the message, once it is dealt with.
    pub async fn acknowledge(self) {
        self.acknowledge.await;
    }
}
