//! Takes downlinks from the broker as applications publish them.

use std::sync::Arc;

use async_trait::async_trait;
use mqtt::{DownlinkRefusal, DownlinkSink, PublishedDownlink};
use server::concurrency_limit::ConcurrencyLimit;
use tokio::sync::Semaphore;
use types::Kinded;

use super::Downlinks;
use crate::Error;

/// How many downlinks are processed at once; one application gets at most half of what is free.
const CONCURRENCY_MAX: usize = 256;

/// The way of downlinks from the broker to the queues of their devices.
pub struct DownlinkReceiver {
    downlinks: Arc<Downlinks>,
    places: Semaphore,
    limit: Arc<ConcurrencyLimit>,
}

impl DownlinkReceiver {
    /// A receiver that is not busy.
    pub fn new(downlinks: Arc<Downlinks>) -> Self {
        Self { downlinks, places: Semaphore::new(CONCURRENCY_MAX), limit: Arc::default() }
    }
}

#[async_trait]
impl DownlinkSink for DownlinkReceiver {
    async fn accept(
        &self,
        PublishedDownlink { app_id, dev_id, body }: PublishedDownlink,
    ) -> Result<(), DownlinkRefusal> {
        let permit = self.limit.acquire(app_id.as_str(), self.places.available_permits());
        let (Some(_permit), Ok(_place)) = (permit, self.places.try_acquire()) else {
            self.downlinks.publish_error(&app_id, &dev_id, None, &Error::DownlinksBusy);
            return Err(DownlinkRefusal::Busy);
        };
        match self.downlinks.handle(&app_id, &dev_id, &body).await {
            Err(error) if may_succeed_later(&error) => Err(DownlinkRefusal::Unavailable),
            _ => Ok(()),
        }
    }
}

/// Whether the same downlink may be kept if it is sent again.
fn may_succeed_later(error: &Error) -> bool {
    use types::Kind::{Conflict, Exhausted, Internal, Timeout, Unavailable};
    matches!(error.kind(), Conflict | Exhausted | Internal | Timeout | Unavailable)
}
