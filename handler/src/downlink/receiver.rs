//! Takes downlinks from the broker as applications publish them.

use std::sync::Arc;

use async_trait::async_trait;
use mqtt::{Accepted, DownlinkRefusal, DownlinkSink, PublishedDownlink};
use server::ledger::{Ledger, Limits, Owner, Resource, Turns};

use super::Downlinks;

/// Maximum numbers of downlinks processed at once, in all and for one application: the more applications there are,
/// the fewer each gets. Others wait, as many as their clients may have published.
const CONCURRENCY: Limits = Limits { total: 256, owner_max: 128, owner_min: 1 };

/// The way of downlinks from the broker to the queues of their devices.
pub struct DownlinkReceiver {
    downlinks: Arc<Downlinks>,
    turns: Arc<Turns>,
}

impl DownlinkReceiver {
    /// A receiver that is not busy.
    pub fn new(downlinks: Arc<Downlinks>, ledger: &Ledger) -> Self {
        Self { downlinks, turns: Turns::new(ledger.budget(Resource::Downlinks, CONCURRENCY)) }
    }
}

#[async_trait]
impl DownlinkSink for DownlinkReceiver {
    async fn accept(&self, downlink: PublishedDownlink, accepted: Accepted<'_>) -> Result<(), DownlinkRefusal> {
        let _turn = self.turns.take(&Owner::from(&downlink.app_id)).await;
        // In a box, so that those that wait are small.
        Box::pin(self.downlinks.handle(&downlink, accepted)).await
    }
}
