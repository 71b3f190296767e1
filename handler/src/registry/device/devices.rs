//! The devices in the store.

pub(super) mod attributes;
pub(super) mod search;

use std::sync::Arc;

use bytes::Bytes;
use server::usage::Usage;
use store::{Batch, Commit, Entry, Key, Store};
use types::{AppId, Clock, DevId, DevicePath, Kind, Kinded, Timestamp};

use super::{
    frame_counters,
    model::{Change, Device, record},
    moves::in_flight,
};
use crate::{
    Error,
    registry::{
        alarm::Alarm,
        application::{ApplicationSummary, eui_holder, store_keys},
        sealer::Sealer,
    },
};

/// Maximum number of attempts of a change while others change the same application.
pub(super) const CHANGE_ATTEMPTS_MAX: usize = 5;
/// Maximum number of devices in one page.
pub(crate) const DEVICE_PAGE_MAX: usize = 10_000;
/// Maximum size of the records in one page, in bytes. gRPC clients read at most 4 MiB, and messages are smaller than
/// records.
const DEVICE_PAGE_BYTES_MAX: usize = 4 << 20;
/// Number of records read from the store at once.
const READ_MAX: usize = 256;

/// The devices of all applications.
#[derive(Clone)]
pub struct Devices {
    pub(super) store: Arc<dyn Store>,
    pub(super) sealer: Sealer,
    pub(super) clock: Arc<dyn Clock>,
}

/// Some devices of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct DevicePage {
    /// The devices of this page.
    pub devices: Vec<Device>,
    /// Number of devices that the application has.
    pub total: usize,
}

/// A device that was deleted, and whose records in history are to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Application of the device.
    pub app_id: AppId,
    /// Id of the device. Another one may have it by now.
    pub dev_id: DevId,
    /// Time of the deletion.
    pub(super) at: Timestamp,
    /// Later records are not the deleted device's.
    pub until: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfExists {
    Replace,
    Fail,
}

impl Devices {
    /// The devices in `store`, with their keys sealed by `sealer`.
    pub fn new(store: Arc<dyn Store>, sealer: Sealer, clock: Arc<dyn Clock>) -> Self {
        Self { store, sealer, clock }
    }

    /// Gets a device; [`Error::NotFound`] if it or its application does not exist.
    pub async fn get(&self, path: DevicePath<'_>) -> Result<Device, Error> {
        let keys = [store_keys::summary(path.app_id)?, store_keys::device(path)?, store_keys::frame_counters(path)?];
        let [summary, device, counters] = self.store.get_array(&keys).await?;
        summary.ok_or_else(|| Error::application_not_found(path.app_id))?;
        let Some(device) = device else { return Err(self.absent(path).await) };
        let mut device = record::read(&self.sealer, &device.value)?;
        if let Some(counters) = frame_counters::read(counters.as_ref())? {
            counters.update(&mut device);
        }
        self.adopt(&device).await;
        Ok(device)
    }

    /// The same; none if it does not exist.
    pub(crate) async fn find(&self, path: DevicePath<'_>) -> Result<Option<Device>, Error> {
        match self.get(path).await {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Gets a device and the summary of its application in one read, without their keys, which an uplink does not need;
    /// [`Error::NotFound`] if one of them does not exist.
    pub async fn get_with_summary(&self, path: DevicePath<'_>) -> Result<(ApplicationSummary, Device), Error> {
        let (summary, device) = self.records(path).await?;
        Ok((serde_json::from_slice(&summary)?, record::read_without_keys(&device)?))
    }

    /// Gets several devices of an application in the same way, also in one read; each may be missing by itself. Why they
    /// are takes another read.
    pub(crate) async fn get_several_with_summary(
        &self,
        app_id: &AppId,
        dev_ids: &[&DevId],
    ) -> Result<(ApplicationSummary, Vec<Result<Device, Error>>), Error> {
        let devices = dev_ids.iter().map(|dev_id| store_keys::device(DevicePath { app_id, dev_id }));
        let keys: Vec<Key> = std::iter::once(store_keys::summary(app_id)).chain(devices).collect::<Result<_, _>>()?;
        let mut found = self.store.get(&keys).await?.into_iter();
        let summary = found.next().flatten().ok_or_else(|| Error::application_not_found(app_id))?;
        let found: Vec<_> = dev_ids.iter().copied().zip(found).collect();
        let missing: Vec<_> = found.iter().filter(|(_, device)| device.is_none()).map(|(dev_id, _)| *dev_id).collect();
        let mut absent = self.absent_several(app_id, &missing).await?.into_iter();
        let device = |(dev_id, device): (&DevId, Option<Entry>)| match device {
            Some(device) => record::read_without_keys(&device.value),
            None => Err(absent.next().unwrap_or_else(|| Error::device_not_found(DevicePath { app_id, dev_id }))),
        };
        Ok((serde_json::from_slice(&summary.value)?, found.into_iter().map(device).collect()))
    }

    /// Succeeds if a device exists; [`Error::NotFound`] if it or its application does not.
    pub(crate) async fn check_exists(&self, path: DevicePath<'_>) -> Result<(), Error> {
        self.records(path).await.map(drop)
    }

    async fn records(&self, path: DevicePath<'_>) -> Result<(Bytes, Bytes), Error> {
        let keys = [store_keys::summary(path.app_id)?, store_keys::device(path)?];
        let [summary, device] = self.store.get_array(&keys).await?;
        let summary = summary.ok_or_else(|| Error::application_not_found(path.app_id))?;
        let Some(device) = device else { return Err(self.absent(path).await) };
        Ok((summary.value, device.value))
    }

    /// Lists devices ordered by id: at most `limit`, after skipping `offset`.
    ///
    /// The page has fewer devices if their records would exceed 4 MiB. They are read in pieces that take turns with the
    /// long work of others, and charged to `usage` before.
    pub async fn list(&self, app_id: &AppId, offset: usize, limit: usize, usage: &Usage) -> Result<DevicePage, Error> {
        let prefix = store_keys::devices(app_id)?;
        let limit = limit.min(DEVICE_PAGE_MAX);
        let store::Page { mut entries, total } = self.store.page(&prefix, offset, limit.min(READ_MAX)).await?;
        let limit = limit.min(total.saturating_sub(offset));
        let (mut page, mut bytes_left) = (DevicePage { devices: Vec::new(), total }, DEVICE_PAGE_BYTES_MAX);
        loop {
            // Only for what takes a processor: others go on while the store is read.
            let mut turn = usage.turn_for_entries().await;
            for entry in &entries {
                turn.next_entry().await;
                let Some(rest) = bytes_left.checked_sub(entry.value.len()) else { return Ok(page) };
                bytes_left = rest;
                usage.add_entries(1);
                turn.add_bytes(entry.value.len());
                page.devices.push(record::read(&self.sealer, &entry.value)?);
            }
            drop(turn);
            let wanted = limit.saturating_sub(page.devices.len());
            let Some(last) = entries.pop().filter(|_| wanted > 0) else { return Ok(page) };
            entries = self.store.list(&prefix, Some(&last.key), wanted.min(READ_MAX)).await?;
        }
    }

    /// A device as [`Self::set`] would store it, and the one that it would replace; [`Error::Invalid`] if it breaks a
    /// rule.
    pub(crate) async fn preview(&self, mut device: Device) -> Result<(Device, Option<Device>), Error> {
        device.check()?;
        let before = match self.get(device.path()).await {
            Ok(before) => Some(before),
            Err(Error::NotFound { what: "Device", .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(before) = &before {
            device.fill_from(&before.lorawan);
        }
        Ok((device, before))
    }

    /// Creates or replaces a device; [`Error::NotFound`] if its application is not registered.
    pub async fn set(&self, device: Device) -> Result<Change, Error> {
        self.put(device, IfExists::Replace).await
    }

    /// Creates a device; [`Error::AlreadyExists`] if its id or its EUIs are taken, [`Error::NotFound`] if its
    /// application is not registered.
    pub(crate) async fn create(&self, device: Device) -> Result<(), Error> {
        self.put(device, IfExists::Fail).await.map(drop)
    }

    async fn put(&self, device: Device, if_exists: IfExists) -> Result<Change, Error> {
        device.check()?;
        let change = store::retry(CHANGE_ATTEMPTS_MAX, || self.try_put(device.clone(), if_exists)).await?;
        change.ok_or_else(|| Error::device_conflict(device.path()))
    }

    /// Puts a device; none if something that was read has changed in between.
    ///
    /// It takes one read and one commit, and those of the claim if its EUIs change, or a read of their holder if not.
    async fn try_put(&self, mut device: Device, if_exists: IfExists) -> Result<Option<Change>, Error> {
        let path = device.path();
        let (summary_key, key) = (store_keys::summary(path.app_id)?, store_keys::device(path)?);
        let counters_key = store_keys::frame_counters(path)?;
        let [leaving_key, arriving_key] = in_flight::keys(path)?;
        let keys = [summary_key, key.clone(), counters_key.clone(), leaving_key, arriving_key];
        let keys: Vec<Key> = keys.into_iter().chain(eui_key(&device)?).collect();
        let mut found = self.store.get(&keys).await?.into_iter();
        let application = found.next().flatten().ok_or_else(|| Error::application_not_found(path.app_id))?;
        let (stored, counters) = (found.next().flatten(), found.next().flatten());
        let moves = [found.next().flatten(), found.next().flatten()];
        let named = found.next().flatten();
        if stored.is_some() && if_exists == IfExists::Fail {
            return Err(Error::already_exists("Device", path));
        }
        // A device must not outlive its application.
        let mut batch =
            Batch::new().expect(application.key.clone(), application.version).expect_entry(&key, stored.as_ref());
        if stored.is_none() {
            batch = in_flight::expect_free(batch, path, &moves)?;
        }
        let mut old = stored.map(|stored| record::read(&self.sealer, &stored.value)).transpose()?;
        if let (Some(old), Some(counters)) = (&mut old, frame_counters::read(counters.as_ref())?) {
            counters.update(old);
            // The counters of the request count from now on.
            batch = batch.delete(counters_key);
        }
        if let Some(old) = &old {
            device.fill_from(&old.lorawan);
            if old.lorawan.app_key != device.lorawan.app_key {
                // A nonce may be used once per key.
                batch = batch.delete(store_keys::nonces(device.path())?);
            }
        }
        let Some((batch, given_up)) = self.change_euis(batch, &device, old.as_ref(), named.as_ref()).await? else {
            return Ok(None);
        };
        let change = old.map_or(Change::Created, |old| Change::Updated(Box::new(old)));
        let batch = match &change {
            Change::Created => self.with_first_alarm(batch, &application.value, &device, None)?,
            Change::Updated(old) => self.with_look(batch, &application.value, old, &device)?,
        };
        let batch = batch.put(key, record::write(&self.sealer, &device)?).growing();
        if self.store.commit(batch).await? == Commit::Conflict {
            return Ok(None);
        }
        eui_holder::release(given_up, self.store.as_ref()).await;
        if matches!(change, Change::Updated(_)) {
            self.adopt(&device).await;
        }
        Ok(Some(change))
    }

    /// Adds the alarm of a device that is new in its application, if that has such. Templates send nothing.
    pub(super) fn with_first_alarm(
        &self,
        batch: Batch,
        application: &[u8],
        device: &Device,
        last_seen: Option<Timestamp>,
    ) -> Result<Batch, Error> {
        let ApplicationSummary { silent_after, .. } = serde_json::from_slice(application)?;
        match silent_after.and_then(|after| after.of_device(&device.attributes)) {
            Some(after) if !device.is_template() => {
                Alarm::set(self.clock.now(), last_seen, after).put(batch, device.path(), None)
            }
            _ => Ok(batch),
        }
    }

    /// Adds that the alarm of a device that gets another time is to be looked at now, also if this process is killed.
    fn with_look(&self, batch: Batch, application: &[u8], old: &Device, device: &Device) -> Result<Batch, Error> {
        let ApplicationSummary { silent_after, .. } = serde_json::from_slice(application)?;
        let time_of = |device: &Device| silent_after.and_then(|after| after.of_device(&device.attributes));
        if time_of(old) == time_of(device) {
            return Ok(batch);
        }
        Ok(batch.put(store_keys::due_alarm(&device.app_id, self.clock.now(), &device.dev_id)?, ""))
    }

    /// Deletes a device; [`Error::NotFound`] if it does not exist.
    ///
    /// [`Self::deletions`] has the deletion until [`Self::end_deletion`] says that history has deleted the records, too.
    pub async fn delete(&self, path: DevicePath<'_>) -> Result<Deletion, Error> {
        let [found] = self.store.get_array(&[store_keys::device(path)?]).await?;
        let Entry { key, value, version } = found.ok_or_else(|| Error::device_not_found(path))?;
        let device = record::read_without_keys(&value)?;
        let batch = Batch::new()
            .expect(key.clone(), version)
            .delete(key)
            .delete(store_keys::nonces(path)?)
            .delete(store_keys::frame_counters(path)?)
            .delete(store_keys::alarm(path)?)
            .delete(store_keys::downlinks(path)?)
            .delete(store_keys::sent_downlinks(path)?);
        let (batch, held) = self.give_euis_up(batch, &device).await?;
        let (batch, deletion) = self.begin_deletion(batch, path).await?;
        match self.store.commit(batch).await? {
            Commit::Done => {
                eui_holder::release(held, self.store.as_ref()).await;
                Ok(deletion)
            }
            Commit::Conflict => Err(Error::device_conflict(path)),
        }
    }
}

/// Returns the key of the record that names the device with these EUIs; none for a device without EUIs.
pub(super) fn eui_key(device: &Device) -> Result<Option<Key>, Error> {
    device.euis().map(|euis| store_keys::eui(&device.app_id, euis)).transpose()
}
