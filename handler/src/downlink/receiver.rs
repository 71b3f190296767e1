//! Takes downlinks from the broker as applications publish them.

use std::sync::Arc;

use async_trait::async_trait;
use mqtt::{Accepted, DownlinkRefusal, DownlinkSink, PublishedDownlink};
use server::concurrency_limit::ConcurrencyLimit;
use tokio::sync::Semaphore;

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
    async fn accept(&self, downlink: PublishedDownlink, accepted: Accepted<'_>) -> Result<(), DownlinkRefusal> {
        let permit = self.limit.acquire(downlink.app_id.as_str(), self.places.available_permits());
        let (Some(_permit), Ok(_place)) = (permit, self.places.try_acquire()) else {
            if !DownlinkRefusal::Busy.comes_again(downlink.offer) {
                self.downlinks.publish_error(&downlink.app_id, &downlink.dev_id, None, &Error::DownlinksBusy).forget();
            }
            return Err(DownlinkRefusal::Busy);
        };
        self.downlinks.handle(&downlink, accepted).await
    }
}
