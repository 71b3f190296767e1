//! A message as it came in, with a handle to acknowledge it once it is dealt with.

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

/// A message that was received.
pub(crate) struct Delivery {
    pub(crate) topic: String,
    pub(crate) payload: Bytes,
    /// Whether the source sent it before.
    pub(crate) is_repeated: bool,
    pub(crate) ack: Ack,
}

/// Acknowledges a message. If it is dropped instead, the source sends the message again later.
pub(crate) struct Ack {
    acknowledge: BoxFuture<'static, ()>,
    /// The place of the message among those in progress.
    _permit: OwnedSemaphorePermit,
}

impl Ack {
    pub(crate) fn new(acknowledge: impl Future<Output = ()> + Send + 'static, permit: OwnedSemaphorePermit) -> Self {
        Self { acknowledge: Box::pin(acknowledge), _permit: permit }
    }

    /// Does something more behind the acknowledgement.
    pub(crate) fn then(self, after: impl FnOnce() + Send + 'static) -> Self {
        let Self { acknowledge, _permit } = self;
        let acknowledge = async move {
            acknowledge.await;
            after();
        };
        Self { acknowledge: Box::pin(acknowledge), _permit }
    }

    pub(crate) async fn acknowledge(self) {
        self.acknowledge.await;
    }
}
