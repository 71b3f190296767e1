//! Finding devices, and what they sent last; changing many.

use api::device::{
    ChangeDevicesRequest, ChangedDevices, FindDevicesRequest, FoundDevices, NewestUplinks, NewestUplinksRequest,
    device_manager_client::DeviceManagerClient as Stub,
};

use super::HandlerClient;
use crate::{Result, transport::retry::Call};

impl HandlerClient {
    /// Finds devices of an application by text and by when they were last seen. They come without keys.
    pub async fn find_devices(&self, search: FindDevicesRequest) -> Result<FoundDevices> {
        let send = |channel, request| async move { Stub::new(channel).find_devices(request).await };
        self.call(Call::Repeatable, search, send).await
    }

    /// Lists the newest uplinks of some devices, one device after the other.
    pub async fn list_newest_uplinks(&self, devices: NewestUplinksRequest) -> Result<NewestUplinks> {
        let send = |channel, request| async move { Stub::new(channel).list_newest_uplinks(request).await };
        self.call(Call::Repeatable, devices, send).await
    }

    /// Sets or removes an attribute of devices, each by itself. Repeating the call changes nothing more.
    pub async fn change_devices(&self, change: ChangeDevicesRequest) -> Result<ChangedDevices> {
        let send = |channel, request| async move { Stub::new(channel).change_devices(request).await };
        self.call(Call::Once, change, send).await
    }
}
