//! Devices in the network servers and in the store.
//!
//! The device before a change is read and replaced in one turn. Otherwise, of two changes of its EUIs, each would
//! replace the same ones, and those of one of them would stay in the network server.

use server::{status::ErrorChain, usage::Usage};
use types::{AppId, Credential, DevId, Secret};

use super::Operations;
use crate::{
    Error,
    network::network_broker::Turn,
    output::Event,
    registry::device::{Change, Device},
};

/// Number of devices read at once.
const PAGE: usize = 100;

/// The turn to change a device of an application in the network servers, with a token in the caller's name.
pub(super) struct Permit {
    turn: Turn,
    token: Secret,
}

impl Operations {
    /// Waits for the turn to change a device of this application, and gets the token for network brokers; none if there
    /// are no network brokers.
    pub(super) async fn permit(&self, credential: Option<Credential>, app_id: &AppId) -> Result<Option<Permit>, Error> {
        let Some(token) = self.token_for_network_brokers(credential, app_id).await? else { return Ok(None) };
        Ok(Some(Permit { turn: self.network_brokers.turn(app_id).await?, token }))
    }

    /// Creates or replaces a device, in the network servers first, if there are any.
    pub(super) async fn change_device(&self, permit: Option<Permit>, device: &Device) -> Result<Change, Error> {
        let keep = self.devices.set(device.clone());
        let Some(Permit { turn, token }) = &permit else { return keep.await };
        let (told, before) = self.devices.preview(device.clone()).await?;
        self.network_brokers.change((turn, token), (&self.devices, keep), &told, before.as_ref()).await
    }

    /// Deletes a device, in the network servers first, if there are any.
    pub(super) async fn remove_device(
        &self,
        permit: Option<Permit>,
        app_id: &AppId,
        dev_id: &DevId,
    ) -> Result<(), Error> {
        let delete = self.devices.delete(app_id, dev_id);
        let deletion = match &permit {
            None => delete.await?,
            Some(Permit { turn, token }) => {
                let device = self.devices.get(app_id, dev_id).await?;
                self.network_brokers.delete((turn, token), (&self.devices, delete), &device).await?
            }
        };
        self.publish(app_id.clone(), dev_id.clone(), Event::Delete);
        // The device is gone, whatever is left of its messages.
        if let Err(error) = self.delete_history(&deletion).await {
            let error = ErrorChain(&error);
            tracing::warn!(%app_id, %dev_id, %error, "cannot delete the history of a device: trying again later");
        }
        Ok(())
    }

    /// Deletes all devices of an application, each in the network servers first, if there are network brokers. The
    /// first error ends it; what was deleted stays so.
    pub(super) async fn delete_network_devices(
        &self,
        credential: Option<Credential>,
        app_id: &AppId,
    ) -> Result<(), Error> {
        let Some(token) = self.token_for_network_brokers(credential, app_id).await? else { return Ok(()) };
        loop {
            let devices = self.devices.list(app_id, 0, PAGE, &Usage::default()).await?.devices;
            if devices.is_empty() {
                return Ok(());
            }
            for device in devices {
                let permit = Permit { turn: self.network_brokers.turn(app_id).await?, token: token.clone() };
                match self.remove_device(Some(permit), app_id, &device.dev_id).await {
                    // Somebody else has deleted it,
                    Ok(()) | Err(Error::NotFound { what: "Device", .. }) => {}
                    // or the application, and then its devices are deleted with it.
                    Err(Error::NotFound { .. }) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
