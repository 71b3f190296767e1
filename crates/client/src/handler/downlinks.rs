//! The downlink queues of devices.

use api::downlink::{Downlink, downlink_manager_client::DownlinkManagerClient as Stub};
use types::{AppId, DevId};

use super::{HandlerClient, device};
use crate::{Result, transport::retry::Call};

impl HandlerClient {
    /// Puts a downlink into the queue of its device, and returns it as it will be sent: with its bytes and its port.
    pub async fn schedule_downlink(&self, downlink: Downlink) -> Result<Downlink> {
        let send = |channel, request| async move { Stub::new(channel).schedule_downlink(request).await };
        self.call(Call::Once, downlink, send).await
    }

    /// Lists the queue of a device, in the order in which it is sent.
    pub async fn list_downlinks(&self, app_id: &AppId, dev_id: &DevId) -> Result<Vec<Downlink>> {
        let send = |channel, request| async move { Stub::new(channel).get_downlinks_for_device(request).await };
        Ok(self.call(Call::Repeatable, device(app_id, dev_id), send).await?.downlinks)
    }

    /// Empties the queue of a device.
    pub async fn clear_downlinks(&self, app_id: &AppId, dev_id: &DevId) -> Result<()> {
        let send = |channel, request| async move { Stub::new(channel).delete_downlinks_for_device(request).await };
        self.call(Call::Once, device(app_id, dev_id), send).await
    }
}
