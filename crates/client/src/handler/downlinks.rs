//! The downlink queues of devices.

use api::downlink::{Downlink, downlink_manager_client::DownlinkManagerClient as Stub};
use tonic::transport::Channel;
use types::{AppId, DevId};

use super::{HandlerClient, device};
use crate::{
    Result,
    transport::{
        grpc::{RESPONSE_BYTES_MAX, authorized},
        retry::Call,
    },
};

impl HandlerClient {
    /// Puts a downlink into the queue of its device, and returns it as it will be sent: with its bytes and its port.
    pub async fn schedule_downlink(&self, downlink: Downlink) -> Result<Downlink> {
        let request = || authorized(downlink.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).schedule_downlink(request).await };
        self.peer.call(Call::Once, request, send).await
    }

    /// Lists the queue of a device, in the order in which it is sent.
    pub async fn list_downlinks(&self, app_id: &AppId, dev_id: &DevId) -> Result<Vec<Downlink>> {
        let request = || authorized(device(app_id, dev_id), &self.credential);
        let send = |channel, request| async move { stub(channel).get_downlinks_for_device(request).await };
        Ok(self.peer.call(Call::Repeatable, request, send).await?.downlinks)
    }

    /// Empties the queue of a device.
    pub async fn clear_downlinks(&self, app_id: &AppId, dev_id: &DevId) -> Result<()> {
        let request = || authorized(device(app_id, dev_id), &self.credential);
        let send = |channel, request| async move { stub(channel).delete_downlinks_for_device(request).await };
        self.peer.call(Call::Once, request, send).await
    }
}

fn stub(channel: Channel) -> Stub<Channel> {
    Stub::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX)
}
