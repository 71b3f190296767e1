//! Takes downlinks from the broker as applications publish them.

use std::sync::Arc;

use async_trait::async_trait;
use mqtt::{Accepted, DownlinkRefusal, DownlinkSink, PublishedDownlink};
use server::ledger::{Budget, Ledger, Limits, Owner, Resource};

use super::Downlinks;
use crate::Error;

/// How many downlinks are processed at once, and how many of one application; the more are, the fewer it gets.
const CONCURRENCY: Limits = Limits { total: 256, owner_max: 128, owner_min: 0 };

/// The way of downlinks from the broker to the queues of their devices.
pub struct DownlinkReceiver {
    downlinks: Arc<Downlinks>,
    budget: Arc<Budget>,
}

impl DownlinkReceiver {
    /// A receiver that is not busy.
    pub fn new(downlinks: Arc<Downlinks>, ledger: &Ledger) -> Self {
        Self { downlinks, budget: ledger.budget(Resource::Downlinks, CONCURRENCY) }
    }
}

#[async_trait]
impl DownlinkSink for DownlinkReceiver {
    async fn accept(&self, downlink: PublishedDownlink, accepted: Accepted<'_>) -> Result<(), DownlinkRefusal> {
        let Ok(_charge) = self.budget.charge(&Owner::from(&downlink.app_id), 1) else {
            if !DownlinkRefusal::Busy.comes_again(downlink.offer) {
                self.downlinks.publish_error(&downlink.app_id, &downlink.dev_id, None, &Error::DownlinksBusy).forget();
            }
            return Err(DownlinkRefusal::Busy);
        };
        self.downlinks.handle(&downlink, accepted).await
    }
}
