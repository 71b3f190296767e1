//! Moving devices to other applications.

use api::device::{MoveDeviceRequest, MovedDevice, device_manager_client::DeviceManagerClient as Stub};
use types::DevicePath;

use super::HandlerClient;
use crate::{Result, transport::retry::Call};

impl HandlerClient {
    /// Moves a device to another application of the handler, with its keys, session and counters. The credential needs
    /// the right `devices` to both.
    pub async fn move_device(&self, from: DevicePath<'_>, to: DevicePath<'_>) -> Result<MovedDevice> {
        let message = MoveDeviceRequest {
            app_id: from.app_id.to_string(),
            dev_id: from.dev_id.to_string(),
            to_app_id: to.app_id.to_string(),
            to_dev_id: to.dev_id.to_string(),
        };
        let send = |channel, request| async move { Stub::new(channel).move_device(request).await };
        self.call(Call::Once, message, send).await
    }
}
