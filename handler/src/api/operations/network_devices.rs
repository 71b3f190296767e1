//! The devices of an application in the network servers, where nobody could delete them after the application.

use types::{AppId, Credential};

use super::Operations;
use crate::{Error, output::Event};

/// How many devices are read at once.
const PAGE: usize = 100;

impl Operations {
    /// Deletes all devices of an application, each in the network servers first, if there are network brokers. The
    /// first error ends it; what was deleted stays so.
    pub(super) async fn delete_network_devices(
        &self,
        credential: Option<Credential>,
        app_id: &AppId,
    ) -> Result<(), Error> {
        let Some(token) = self.token_for_network_brokers(credential, app_id).await? else { return Ok(()) };
        loop {
            let devices = self.devices.list(app_id, 0, PAGE).await?.devices;
            if devices.is_empty() {
                return Ok(());
            }
            for device in devices {
                self.network_brokers.delete_device(&token, &device).await?;
                match self.devices.delete(app_id, &device.dev_id).await {
                    Ok(()) => self.publish(app_id.clone(), device.dev_id, Event::Delete),
                    // Somebody else has deleted it.
                    Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
