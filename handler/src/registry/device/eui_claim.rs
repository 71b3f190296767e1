//! Claiming EUIs: a pair of AppEUI and DevEUI belongs to at most one device of all applications. A template has no
//! DevEUI, so there is one for each AppEUI.
//!
//! Applications have tags of their own, so no commit covers two of them, and the holder of a pair is a record under the
//! pair's own tag. First the application records that it is claiming the pair, then it becomes the holder, then the
//! device is stored, provided that the application is still claiming. A holder that neither has such a device nor is
//! claiming the pair is left over from a crash, and another application may take its place. Every claimant rewrites the
//! holder, so a concurrent takeover or release fails on its version.

use std::time::Duration;

use server::status::ErrorChain;
use store::{Batch, Commit, Entry};
use types::{AppEui, AppId, DevEui, DevId};

use super::{
    devices::{CHANGE_ATTEMPTS_MAX, Devices},
    model::Device,
    moves::in_flight,
};
use crate::{
    Error,
    registry::application::{eui_holder, euis::Euis, store_keys},
};

/// Time that a claim lasts that a crash interrupted; far longer than a request.
const CLAIM_AGE_MAX: Duration = Duration::from_secs(600);

impl Device {
    /// Its EUIs; none if both are zero, because then nothing joins with them.
    pub(crate) fn euis(&self) -> Option<Euis> {
        let (app_eui, dev_eui) = (self.lorawan.app_eui, self.lorawan.dev_eui);
        (!dev_eui.is_zero() || !app_eui.is_zero()).then_some(Euis { app_eui, dev_eui })
    }
}

impl Devices {
    /// The application and the device that have this pair of EUIs; none if any application may register it.
    ///
    /// Only for the operator: nobody else is told whose it is.
    pub async fn holder(&self, app_eui: AppEui, dev_eui: DevEui) -> Result<Option<(AppId, DevId)>, Error> {
        let euis = Euis { app_eui, dev_eui };
        let [Some(holder)] = self.store.get_array(&[store_keys::holder(euis)?]).await? else { return Ok(None) };
        let app_id: AppId = String::from_utf8_lossy(&holder.value).parse()?;
        let [device] = self.store.get_array(&[store_keys::eui(&app_id, euis)?]).await?;
        let dev_id = device.map(|device| String::from_utf8_lossy(&device.value).parse()).transpose()?;
        Ok(dev_id.map(|dev_id| (app_id, dev_id)))
    }

    /// Claims the EUIs of a device that is about to be stored in the place of `old`, so that nobody else takes them
    /// before; [`Error::AlreadyExists`] if somebody has them. Returns what [`Self::abandon`] gives up; none if the EUIs
    /// do not change.
    pub(crate) async fn reserve(&self, device: &Device, old: Option<&Device>) -> Result<Option<Entry>, Error> {
        let Some(euis) = device.euis().filter(|euis| old.and_then(Device::euis) != Some(*euis)) else {
            return Ok(None);
        };
        let [named] = self.store.get_array(&[store_keys::eui(&device.app_id, euis)?]).await?;
        if named.is_some() {
            return Err(taken(euis));
        }
        let claim = store::retry(CHANGE_ATTEMPTS_MAX, || self.claim(&device.app_id, euis)).await?;
        claim.map(Some).ok_or_else(|| Error::device_conflict(device.path()))
    }

    /// Gives up the claim of a device that was not stored. Until it ends by itself, a failure keeps other applications
    /// from the EUIs.
    pub(crate) async fn abandon(&self, device: &Device, claim: Option<Entry>) {
        let (Some(claim), Some(euis)) = (claim, device.euis()) else { return };
        let abandoned = async {
            let held = self.held(&device.app_id, euis).await?;
            let batch = Batch::new().expect(claim.key.clone(), claim.version).delete(claim.key);
            // After a conflict, a device is stored with it.
            if self.store.commit(batch).await? == Commit::Done {
                eui_holder::release(held, self.store.as_ref()).await;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = abandoned.await {
            tracing::warn!(error = %ErrorChain(&error), "cannot give up the claim of EUIs");
        }
    }

    /// Adds to the batch that stores a device what changes with its EUIs; none if others interfered.
    ///
    /// `named` says which device of the application has the pair. Also returns the holders of the pair that the device
    /// gives up, which are released when the batch is committed. [`Error::AlreadyExists`] if another device or another
    /// application has the pair.
    pub(super) async fn change_euis(
        &self,
        mut batch: Batch,
        device: &Device,
        old: Option<&Device>,
        named: Option<&Entry>,
    ) -> Result<Option<(Batch, Vec<Entry>)>, Error> {
        let (euis, old_euis) = (device.euis(), old.and_then(Device::euis));
        let is_new = euis != old_euis;
        // Templates from the time when several could have one AppEUI are not named yet.
        if let Some(euis) = euis.filter(|_| is_new || named.is_none()) {
            if named.is_some() {
                return Err(taken(euis));
            }
            match self.claim(&device.app_id, euis).await {
                Ok(Some(claim)) => {
                    let key = store_keys::eui(&device.app_id, euis)?;
                    batch = batch.expect(claim.key.clone(), claim.version).delete(claim.key);
                    batch = batch.expect_absent(key.clone()).put(key, device.dev_id.as_str().as_bytes().to_vec());
                }
                Ok(None) => return Ok(None),
                // It stays a template beside the other, as it was.
                Err(Error::AlreadyExists { .. }) if !is_new => {}
                Err(error) => return Err(error),
            }
        }
        match old.filter(|_| is_new) {
            Some(old) => self.give_euis_up(batch, old).await.map(Some),
            None => Ok(Some((batch, Vec::new()))),
        }
    }

    /// Adds to a batch that a device no longer has its EUIs, if they are its own. Also returns their holders, which are
    /// released when the batch is committed.
    pub(super) async fn give_euis_up(&self, batch: Batch, device: &Device) -> Result<(Batch, Vec<Entry>), Error> {
        let Some(euis) = device.euis() else { return Ok((batch, Vec::new())) };
        let [named] = self.store.get_array(&[store_keys::eui(&device.app_id, euis)?]).await?;
        // Another template may have the AppEUI, if both are from the time when that was possible.
        let Some(named) = named.filter(|named| *named.value == *device.dev_id.as_str().as_bytes()) else {
            return Ok((batch, Vec::new()));
        };
        let given_up = self.held(&device.app_id, euis).await?;
        Ok((batch.expect(named.key.clone(), named.version).delete(named.key), given_up))
    }

    /// Makes the application of a stored device the holder of its pair if there is none.
    ///
    /// Devices that were stored before there were holders have none until somebody reads them or they join.
    pub(super) async fn adopt(&self, device: &Device) {
        let adopted = async {
            let Some(euis) = device.euis() else { return Ok(()) };
            let holder = store_keys::holder(euis)?;
            let [None] = self.store.get_array(std::array::from_ref(&holder)).await? else { return Ok(()) };
            let batch = Batch::new().expect_absent(holder.clone());
            // After a conflict, somebody else holds it.
            let _ = self.store.commit(batch.put(holder, device.app_id.as_str().as_bytes().to_vec())).await?;
            Ok::<_, Error>(())
        };
        if let Err(error) = adopted.await {
            tracing::debug!(app_id = %device.app_id, error = %ErrorChain(&error), "cannot record who holds the EUIs of a device");
        }
    }

    /// The record by which the application holds a pair of EUIs, if it does.
    async fn held(&self, app_id: &AppId, euis: Euis) -> Result<Vec<Entry>, Error> {
        eui_holder::held_by(app_id, &[store_keys::holder(euis)?], self.store.as_ref()).await
    }

    /// Claims a pair for an application; [`Error::AlreadyExists`] if another one holds it.
    ///
    /// Returns the record of the claim, which must be unchanged when the device is stored; none if others interfered.
    async fn claim(&self, app_id: &AppId, euis: Euis) -> Result<Option<Entry>, Error> {
        let (claiming, holder) = (store_keys::claiming(app_id, euis)?, store_keys::holder(euis)?);
        // Devices of one application may share a claim. All but one of them lose when they are stored.
        let expires = self.clock.now().plus(CLAIM_AGE_MAX).as_unix_ms();
        let batch = Batch::new().expect_absent(claiming.clone()).put_until(claiming.clone(), "", expires);
        // Before anything changes, because a device that cannot be stored needs no claim.
        let _ = self.store.commit(batch.growing()).await?;
        let mut found = self.store.get(&[claiming, holder.clone()]).await?.into_iter();
        let (claiming, current) = (found.next().flatten(), found.next().flatten());
        if claiming.as_ref().is_some_and(in_flight::is_moving) {
            return Err(Error::Moving("the device with these EUIs".to_owned()));
        }
        let batch = match current {
            None => Batch::new().expect_absent(holder.clone()),
            Some(current) if self.is_held_by_other(app_id, euis, &current).await? => return Err(taken(euis)),
            Some(current) => Batch::new().expect(current.key, current.version),
        };
        let batch = batch.put(holder, app_id.as_str().as_bytes().to_vec());
        // After a conflict, another claim of this application may have made it the holder.
        let is_holder = self.store.commit(batch).await? == Commit::Done || !self.held(app_id, euis).await?.is_empty();
        Ok(claiming.filter(|_| is_holder))
    }

    /// Returns true if `holder` is another application that has a device with this pair, or is claiming it.
    pub(super) async fn is_held_by_other(&self, app_id: &AppId, euis: Euis, holder: &Entry) -> Result<bool, Error> {
        let holder: AppId = String::from_utf8_lossy(&holder.value).parse()?;
        if holder == *app_id {
            return Ok(false);
        }
        let keys = [store_keys::eui(&holder, euis)?, store_keys::claiming(&holder, euis)?];
        Ok(self.store.get(&keys).await?.iter().any(Option::is_some))
    }
}

/// The same for devices of the caller's application and of others, so as not to reveal whose it is.
pub(super) fn taken(Euis { app_eui, dev_eui }: Euis) -> Error {
    if dev_eui.is_zero() {
        return Error::already_exists("Registration template with AppEUI", app_eui);
    }
    Error::already_exists("Device with AppEUI and DevEUI", dev_eui)
}
