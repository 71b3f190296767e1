//! Finding devices, and what they sent last; changing many.

use api::device::{
    ChangeDevicesRequest, ChangedDevices, FindDevicesRequest, FoundDevices, NewestUplinks, NewestUplinksRequest,
    device_manager_client::DeviceManagerClient as Stub,
};
use tonic::transport::Channel;

use super::HandlerClient;
use crate::{
    Result,
    transport::{
        grpc::{RESPONSE_BYTES_MAX, authorized},
        retry::Call,
    },
};

impl HandlerClient {
    /// Finds devices of an application by text and by when they were last seen. They come without keys.
    pub async fn find_devices(&self, search: FindDevicesRequest) -> Result<FoundDevices> {
        let request = || authorized(search.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).find_devices(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Lists the newest uplinks of some devices, one device after the other.
    pub async fn list_newest_uplinks(&self, devices: NewestUplinksRequest) -> Result<NewestUplinks> {
        let request = || authorized(devices.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).list_newest_uplinks(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Sets or removes an attribute of devices, each by itself. Repeating the call changes nothing more.
    pub async fn change_devices(&self, change: ChangeDevicesRequest) -> Result<ChangedDevices> {
        let request = || authorized(change.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).change_devices(request).await };
        self.peer.call(Call::Once, request, send).await
    }
}

fn stub(channel: Channel) -> Stub<Channel> {
    Stub::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX)
}
