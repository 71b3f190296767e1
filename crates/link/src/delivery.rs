//! A message as it came in, with a handle to acknowledge it once it is dealt with.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

/// A message that was received.
pub struct Delivery {
    /// The topic to which it was published, or the stream.
    pub topic: String,
    /// Its content.
    pub payload: Bytes,
    /// True if the source sent it before.
    pub is_duplicate: bool,
    /// True if the source may have kept it for some time, while others received later messages.
    pub is_late: bool,
    /// Acknowledges it.
    pub ack: Ack,
}

/// Acknowledges a message. If it is dropped instead, the source sends the message again later.
pub struct Ack {
    acknowledge: BoxFuture<'static, ()>,
    /// Set when the message is dealt with. `None` where a repetition cannot be told.
    is_settled: Option<Arc<AtomicBool>>,
    /// The place of the message among those in progress.
    _permit: OwnedSemaphorePermit,
}

impl Ack {
    /// An acknowledgement that `acknowledge` sends, and a place that it gives up.
    pub fn new(acknowledge: impl Future<Output = ()> + Send + 'static, permit: OwnedSemaphorePermit) -> Self {
        Self { acknowledge: Box::pin(acknowledge), is_settled: None, _permit: permit }
    }

    /// Does something more behind the acknowledgement.
    pub fn then(self, after: impl FnOnce() + Send + 'static) -> Self {
        let Self { acknowledge, is_settled, _permit } = self;
        let acknowledge = async move {
            acknowledge.await;
            after();
        };
        Self { acknowledge: Box::pin(acknowledge), is_settled, _permit }
    }

    /// Notes the acknowledgement there.
    pub fn settling(self, is_settled: Arc<AtomicBool>) -> Self {
        Self { is_settled: Some(is_settled), ..self }
    }

    /// Returns true if the message already came on a connection that was lost, and was dealt with.
    pub fn is_settled(&self) -> bool {
        self.is_settled.as_ref().is_some_and(|is_settled| is_settled.load(Ordering::Acquire))
    }

    /// Tells the source that the message is dealt with.
    pub async fn acknowledge(self) {
        if let Some(is_settled) = &self.is_settled {
            is_settled.store(true, Ordering::Release);
        }
        self.acknowledge.await;
    }
}
