//! Changes of devices, in the network servers first and then in the store.
//!
//! Everything that the store can refuse is checked before a network server is told, and the EUIs are claimed until the
//! change is stored, so that nobody else takes them meanwhile. If the change fails after that, the network servers get
//! back what the store has.

use server::status::ErrorChain;
use types::{ComponentId, DevicePath, Kind, Kinded, Secret};

use super::{
    ApplicationLock, NetworkBrokers,
    registration::{count_on, euis, failed, message},
};
use crate::{
    Error,
    registry::device::{Device, Devices},
};

struct NetworkServerCall<'a> {
    id: &'a ComponentId,
    /// True if the device itself may have been set or deleted there; false if only the one before was deleted.
    is_device: bool,
}

impl NetworkBrokers {
    /// Creates or changes a device in the network servers, and then in the store with `keep`. `before` is the device
    /// that it replaces. If either fails, the network servers are told what the store has.
    pub(crate) async fn change<T>(
        &self,
        (_lock, token): (&ApplicationLock, &Secret),
        (devices, keep): (&Devices, impl Future<Output = Result<T, Error>>),
        device: &Device,
        before: Option<&Device>,
    ) -> Result<T, Error> {
        let claim = devices.reserve(device, before).await?;
        let mut calls = Vec::new();
        let changed = match self.notify(token, device, before, &mut calls).await {
            Ok(()) => keep.await,
            Err(error) => Err(error),
        };
        if changed.is_err() {
            self.put_all_back(calls, token, devices, (device, before)).await;
            devices.abandon(device, claim).await;
        }
        changed
    }

    /// Deletes a device in the network servers, and then in the store with `delete`. If either fails, the network
    /// servers are told what the store has.
    pub(crate) async fn delete<T>(
        &self,
        (_lock, token): (&ApplicationLock, &Secret),
        (devices, delete): (&Devices, impl Future<Output = Result<T, Error>>),
        device: &Device,
    ) -> Result<T, Error> {
        let mut calls = Vec::new();
        let deleted = match self.notify_deleted(token, device, &mut calls).await {
            Ok(()) => delete.await,
            Err(error) => Err(error),
        };
        if deleted.is_err() {
            self.put_all_back(calls, token, devices, (device, None)).await;
        }
        deleted
    }

    /// Tells the network servers that a device is one of another application now, in the names of those who may change
    /// it in the old one and in the new one. What was noted as released is done later if this fails.
    pub(crate) async fn notify_moved(
        &self,
        [old_token, new_token]: [&Secret; 2],
        before: &Device,
        device: &Device,
    ) -> Result<(), Error> {
        let (app_eui, dev_eui) = euis(before);
        for id in &self.ids {
            let Some(client) = self.client(id).await.map_err(|error| failed(id, error))? else { continue };
            let mut message = message(device);
            match client.get_device(old_token, app_eui, dev_eui).await {
                Ok(found) => count_on(&mut message, &found),
                Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Denied) => {}
                Err(error) => return Err(failed(id, error)),
            }
            self.delete_at(id, &client, old_token, before).await?;
            client.set_device(new_token, &message).await.map_err(|error| failed(id, error))?;
        }
        Ok(())
    }

    /// Creates or changes a device in the network servers. If it had other EUIs before, those are deleted.
    async fn notify<'a>(
        &'a self,
        token: &Secret,
        device: &Device,
        before: Option<&Device>,
        calls: &mut Vec<NetworkServerCall<'a>>,
    ) -> Result<(), Error> {
        let moved = before.filter(|before| euis(before) != euis(device));
        let message = message(device);
        for id in &self.ids {
            let Some(client) = self.client(id).await.map_err(|error| failed(id, error))? else { continue };
            if let Some(before) = moved {
                calls.push(NetworkServerCall { id, is_device: false });
                self.delete_at(id, &client, token, before).await?;
            }
            let set = client.set_device(token, &message).await;
            if !set.as_ref().is_err_and(is_refusal) {
                calls.push(NetworkServerCall { id, is_device: true });
            }
            set.map_err(|error| failed(id, error))?;
        }
        Ok(())
    }

    /// Deletes a device in the network servers; it is no error if one does not know it.
    async fn notify_deleted<'a>(
        &'a self,
        token: &Secret,
        device: &Device,
        calls: &mut Vec<NetworkServerCall<'a>>,
    ) -> Result<(), Error> {
        for id in &self.ids {
            let Some(client) = self.client(id).await.map_err(|error| failed(id, error))? else { continue };
            let deleted = self.delete_at(id, &client, token, device).await;
            if !deleted.as_ref().is_err_and(is_refusal) {
                calls.push(NetworkServerCall { id, is_device: true });
            }
            deleted?;
        }
        Ok(())
    }

    async fn put_all_back(
        &self,
        calls: Vec<NetworkServerCall<'_>>,
        token: &Secret,
        devices: &Devices,
        (device, before): (&Device, Option<&Device>),
    ) {
        for call in calls {
            let id = call.id;
            if let Err(error) = self.put_back(call, token, devices, (device, before)).await {
                let (app_id, dev_id, error) = (&device.app_id, &device.dev_id, ErrorChain(&error));
                tracing::warn!(%id, %app_id, %dev_id, %error, "cannot put a device back in a network server");
            }
        }
    }

    /// Tells a network server again what the store has about the EUIs of a device, and about those before.
    async fn put_back(
        &self,
        NetworkServerCall { id, is_device }: NetworkServerCall<'_>,
        token: &Secret,
        devices: &Devices,
        (device, before): (&Device, Option<&Device>),
    ) -> Result<(), Error> {
        let Some(client) = self.client(id).await.map_err(|error| failed(id, error))? else { return Ok(()) };
        let before = before.filter(|before| !is_device && euis(before) != euis(device));
        for changed in before.into_iter().chain(is_device.then_some(device)) {
            match devices.find_by_euis(changed).await? {
                Some(dev_id) => {
                    let kept = devices.get(DevicePath { app_id: &changed.app_id, dev_id: &dev_id }).await?;
                    client.set_device(token, &message(&kept)).await.map_err(|error| failed(id, error))?;
                }
                None => self.delete_at(id, &client, token, changed).await?,
            }
        }
        Ok(())
    }
}

/// Returns true if a network server has refused a call, and surely changed nothing. A call beyond a rate limit may
/// have been repeated after one that did.
fn is_refusal(error: &impl Kinded) -> bool {
    matches!(
        error.kind(),
        Kind::Invalid | Kind::Unauthenticated | Kind::Denied | Kind::AlreadyExists | Kind::Unsupported
    )
}
