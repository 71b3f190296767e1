//! Devices in the network servers and in the store.
//!
//! The device before a change is read and replaced under one lock. Otherwise, of two changes of its EUIs, each would
//! replace the same ones, and those of one of them would stay in the network server.

use server::{status::ErrorChain, usage::Usage};
use types::{AppId, Credential, DevicePath, Secret};

use super::Operations;
use crate::{
    Error,
    network::network_broker::ApplicationLock,
    output::Event,
    registry::device::{Change, Device, Move, Moved, Released},
};

/// Number of devices read at once.
const PAGE: usize = 100;

/// The right to change a device of an application in the network servers, with a token in the caller's name.
pub(super) struct Permit {
    lock: ApplicationLock,
    token: Secret,
}

impl Operations {
    /// Locks the devices of this application, and gets the token for network brokers; none if there are no network
    /// brokers.
    pub(super) async fn permit(&self, credential: Option<Credential>, app_id: &AppId) -> Result<Option<Permit>, Error> {
        let Some(token) = self.token_for_network_brokers(credential, app_id).await? else { return Ok(None) };
        Ok(Some(Permit { lock: self.network_brokers.lock(app_id).await?, token }))
    }

    /// Creates or replaces a device, in the network servers first, if there are any.
    pub(super) async fn change_device(&self, permit: Option<Permit>, device: &Device) -> Result<Change, Error> {
        let keep = self.devices.set(device.clone());
        let Some(Permit { lock, token }) = &permit else { return keep.await };
        let (device, before) = self.devices.preview(device.clone()).await?;
        self.network_brokers.change((lock, token), (&self.devices, keep), &device, before.as_ref()).await
    }

    /// Deletes a device, in the network servers first, if there are any.
    pub(super) async fn remove_device(&self, permit: Option<Permit>, path: DevicePath<'_>) -> Result<(), Error> {
        let delete = self.devices.delete(path);
        let deletion = match &permit {
            None => delete.await?,
            Some(Permit { lock, token }) => {
                let device = self.devices.get(path).await?;
                self.network_brokers.delete((lock, token), (&self.devices, delete), &device).await?
            }
        };
        let DevicePath { app_id, dev_id } = path;
        self.publish(app_id.clone(), dev_id.clone(), Event::Delete);
        // The device is gone, whatever is left of its messages.
        if let Err(error) = self.delete_history(&deletion).await {
            let error = ErrorChain(&error);
            tracing::warn!(%app_id, %dev_id, %error, "cannot delete the history of a device: trying again later");
        }
        Ok(())
    }

    /// The permits for both applications of a move; none if there are no network brokers.
    pub(super) async fn permits(
        &self,
        credential: Option<Credential>,
        moving: &Move,
    ) -> Result<Option<[Permit; 2]>, Error> {
        let (from, to) = (&moving.from.0, &moving.to.0);
        // In order of their ids, so that two moves in opposite directions do not wait for each other.
        let [first, second] = if from < to { [from, to] } else { [to, from] };
        let first = self.permit(credential.clone(), first).await?;
        let second = self.permit(credential, second).await?;
        let (Some(first), Some(second)) = (first, second) else { return Ok(None) };
        Ok(Some(if from < to { [first, second] } else { [second, first] }))
    }

    /// Moves a device to another application, and tells the network servers, if there are any.
    pub(super) async fn relocate_device(&self, permits: Option<[Permit; 2]>, moving: &Move) -> Result<Moved, Error> {
        let Some([from, to]) = &permits else { return self.devices.move_device(moving).await };
        let (app_id, dev_id) = &moving.from;
        let released = self.released_by(&self.devices.get(DevicePath { app_id, dev_id }).await?);
        // First, for the case that this process is killed or a network broker is away after the move. As long as the
        // device has not moved, nothing comes of it.
        if let Some(released) = &released {
            self.devices.note_released(released).await?;
        }
        let moved = self.devices.move_device(moving).await?;
        let notified = async {
            self.network_brokers.notify_moved([&from.token, &to.token], &moved.before, &moved.device).await?;
            if let Some(released) = &released {
                self.devices.forget_released(released).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = notified.await {
            let error = ErrorChain(&error);
            tracing::warn!(%app_id, %dev_id, %error, "cannot tell a network server that a device moved: trying again");
        }
        Ok(moved)
    }

    /// The EUIs that network servers may have of a device that moves; none if it has none.
    fn released_by(&self, device: &Device) -> Option<Released> {
        let euis = device.euis()?;
        Some(Released {
            app_id: device.app_id.clone(),
            dev_id: device.dev_id.clone(),
            app_eui: euis.app_eui,
            dev_eui: euis.dev_eui,
            brokers: self.network_brokers.ids.clone(),
        })
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
                let permit = Permit { lock: self.network_brokers.lock(app_id).await?, token: token.clone() };
                match self.remove_device(Some(permit), device.path()).await {
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
