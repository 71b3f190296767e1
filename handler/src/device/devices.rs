//! Devices: the records that uplinks are looked up in.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use store::{Batch, Commit, Entry, Key, Store, Tag};
use types::{AppEui, AppId, AppKey, AppSKey, DevAddr, DevEui, DevId, NwkSKey};

use super::{record, session::nonces_key};
use crate::{
    Error,
    application::{self, Outline},
    downlink::queue_key,
    sealer::Vault,
};

/// How often a change is tried when somebody else changes the same application at the same time.
pub(super) const TRIES_MAX: usize = 5;
/// The most devices in one answer.
pub const LIST_MAX: usize = 10_000;
/// The most bytes of their records in one answer: gRPC clients read at most 4 MiB, and what they read is smaller.
const LIST_BYTES_MAX: usize = 4 << 20;

/// What the handler keeps about a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The application it belongs to.
    pub app_id: AppId,
    /// Its id in the application.
    pub dev_id: DevId,
    /// For people.
    pub description: String,
    /// Where it is, in degrees.
    pub latitude: f32,
    /// Where it is, in degrees.
    pub longitude: f32,
    /// Where it is, in metres.
    pub altitude: i32,
    /// Whatever the application wants to know; part of every uplink.
    pub attributes: BTreeMap<String, String>,
    /// What LoRaWAN needs.
    pub lorawan: Lorawan,
}

/// The LoRaWAN side of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lorawan {
    /// The EUI of its application or join server.
    pub app_eui: AppEui,
    /// Its own EUI.
    pub dev_eui: DevEui,
    /// Its address; kept when a change leaves it out.
    pub dev_addr: Option<DevAddr>,
    /// Authenticates frames; kept when a change leaves it out.
    pub nwk_s_key: Option<NwkSKey>,
    /// Encrypts payloads; kept when a change leaves it out.
    pub app_s_key: Option<AppSKey>,
    /// For joining; kept when a change leaves it out.
    pub app_key: Option<AppKey>,
    /// The uplink frame counter.
    pub f_cnt_up: u32,
    /// The downlink frame counter.
    pub f_cnt_down: u32,
    /// Whether a frame counter that runs backwards is accepted.
    pub disable_f_cnt_check: bool,
    /// Whether counters have 32 bits.
    pub uses32_bit_f_cnt: bool,
    /// Which addresses it may get.
    pub activation_constraints: String,
    /// When it was last heard, in nanoseconds since 1970; zero for never.
    pub last_seen: i64,
}

/// Whether a device was new.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It was.
    Created,
    /// It was known, and was this before.
    Updated(Box<Device>),
}

/// What becomes of a device that is known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Replaced,
    Refused,
}

/// The devices of every application.
#[derive(Clone)]
pub struct Devices {
    pub(super) store: Arc<dyn Store>,
    pub(super) vault: Vault,
}

impl Devices {
    /// The devices in `store`, whose keys `vault` keeps closed.
    pub fn new(store: Arc<dyn Store>, vault: Vault) -> Self {
        Self { store, vault }
    }

    /// Looks up a device; [`Error::NotFound`] when there is none.
    pub async fn get(&self, app_id: &AppId, dev_id: &DevId) -> Result<Device, Error> {
        let (_, device) = self.records(app_id, dev_id).await?;
        record::read(&self.vault, &device)
    }

    /// Looks up a device and the outline of its application with one read, both without their keys, which an uplink does
    /// not need; [`Error::NotFound`] when there is one of them missing.
    pub async fn get_with_outline(&self, app_id: &AppId, dev_id: &DevId) -> Result<(Outline, Device), Error> {
        let (outline, device) = self.records(app_id, dev_id).await?;
        Ok((serde_json::from_slice(&outline)?, record::read_without_keys(&device)?))
    }

    /// The records of an application and one of its devices, as they were at one moment.
    async fn records(&self, app_id: &AppId, dev_id: &DevId) -> Result<(Bytes, Bytes), Error> {
        let keys = [application::outline_key(app_id)?, device_key(app_id, dev_id)?];
        let mut found = self.store.get(&keys).await?.into_iter().map(|entry| entry.map(|entry| entry.value));
        let outline = found.next().flatten().ok_or_else(|| application::not_found(app_id))?;
        let device = found.next().flatten().ok_or_else(|| not_found(app_id, dev_id))?;
        Ok((outline, device))
    }

    /// Lists devices in the order of their ids: at most `limit` of them, without the first `offset`.
    ///
    /// There are fewer in the page than asked for when more would be too much for one answer.
    pub async fn list(&self, app_id: &AppId, offset: usize, limit: usize) -> Result<Page, Error> {
        let prefix = Key::new(&Tag::application(app_id.as_str())?, DEVICES)?;
        let limit = limit.min(LIST_MAX);
        let store::Page { mut entries, total } = self.store.page(&prefix, offset, limit).await?;
        let limit = limit.min(total.saturating_sub(offset));
        let (mut page, mut bytes_left) = (Page { devices: Vec::new(), total }, LIST_BYTES_MAX);
        loop {
            for entry in &entries {
                let Some(rest) = bytes_left.checked_sub(entry.value.len()) else { return Ok(page) };
                bytes_left = rest;
                page.devices.push(record::read(&self.vault, &entry.value)?);
            }
            let wanted = limit.saturating_sub(page.devices.len());
            let Some(last) = entries.pop().filter(|_| wanted > 0) else { return Ok(page) };
            entries = self.store.list(&prefix, Some(&last.key), wanted).await?;
        }
    }

    /// Creates or replaces a device of a registered application; [`Error::NotFound`] without that.
    pub async fn set(&self, device: Device) -> Result<Change, Error> {
        self.put(device, Known::Replaced).await
    }

    /// Creates a device of a registered application; [`Error::AlreadyExists`] when there is one of its id or its EUIs.
    pub(crate) async fn create(&self, device: Device) -> Result<(), Error> {
        self.put(device, Known::Refused).await.map(drop)
    }

    async fn put(&self, device: Device, known: Known) -> Result<Change, Error> {
        device.check()?;
        for _ in 0..TRIES_MAX {
            if let Some(change) = self.try_put(device.clone(), known).await? {
                return Ok(change);
            }
        }
        Err(Error::Conflict { what: format!("device {}:{}", device.app_id, device.dev_id) })
    }

    /// The same, as long as nothing that it read has changed; nothing otherwise.
    async fn try_put(&self, mut device: Device, known: Known) -> Result<Option<Change>, Error> {
        let application = application::entry(self.store.as_ref(), &device.app_id).await?;
        let before = self.entry(&device.app_id, &device.dev_id).await?;
        if before.is_some() && known == Known::Refused {
            return Err(Error::already_exists("Device", format_args!("{}:{}", device.app_id, device.dev_id)));
        }
        let old = before.as_ref().map(|entry| record::read(&self.vault, &entry.value)).transpose()?;
        if let Some(old) = &old {
            device.keep(&old.lorawan);
        }
        let key = device_key(&device.app_id, &device.dev_id)?;
        let batch = match &before {
            Some(entry) => Batch::new().expect(key.clone(), entry.version),
            None => Batch::new().expect_absent(key.clone()),
        };
        // With the application in the same breath: a device must not outlive it.
        let batch = batch.expect(application.key, application.version);
        let batch = self.claim_eui(batch, &device, old.as_ref()).await?;
        let batch = match &old {
            // Nonces count once under one key.
            Some(old) if old.lorawan.app_key != device.lorawan.app_key => {
                batch.delete(nonces_key(&device.app_id, &device.dev_id)?)
            }
            _ => batch,
        };
        let change = old.map_or(Change::Created, |old| Change::Updated(Box::new(old)));
        Ok(match self.store.commit(batch.put(key, record::write(&self.vault, &device)?)).await? {
            Commit::Done => Some(change),
            Commit::Conflict => None,
        })
    }

    /// Removes a device; [`Error::NotFound`] when there is none.
    pub async fn delete(&self, app_id: &AppId, dev_id: &DevId) -> Result<(), Error> {
        let entry = self.entry(app_id, dev_id).await?;
        let Some(Entry { key, value, version }) = entry else { return Err(not_found(app_id, dev_id)) };
        let device = record::read_without_keys(&value)?;
        let mut batch = Batch::new().expect(key.clone(), version).delete(key);
        batch = batch.delete(nonces_key(app_id, dev_id)?).delete(queue_key(app_id, dev_id)?);
        if let Some(key) = eui_key(&device)? {
            batch = batch.delete(key);
        }
        match self.store.commit(batch).await? {
            Commit::Done => Ok(()),
            Commit::Conflict => Err(Error::Conflict { what: format!("device {app_id}:{dev_id}") }),
        }
    }

    /// Makes the batch also hold the pair of EUIs for this device, and release the pair it had.
    async fn claim_eui(&self, batch: Batch, device: &Device, old: Option<&Device>) -> Result<Batch, Error> {
        let (wanted, held) = (eui_key(device)?, old.map(eui_key).transpose()?.flatten());
        if wanted == held {
            return Ok(batch);
        }
        let batch = held.into_iter().fold(batch, Batch::delete);
        let Some(key) = wanted else { return Ok(batch) };
        if self.store.get(std::slice::from_ref(&key)).await?.into_iter().flatten().next().is_some() {
            return Err(Error::already_exists("Device with AppEUI and DevEUI", device.lorawan.dev_eui));
        }
        Ok(batch.expect_absent(key.clone()).put(key, device.dev_id.as_str().as_bytes().to_vec()))
    }

    async fn entry(&self, app_id: &AppId, dev_id: &DevId) -> Result<Option<Entry>, Error> {
        Ok(self.store.get(&[device_key(app_id, dev_id)?]).await?.into_iter().next().flatten())
    }
}

/// Some devices of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Those that were asked for.
    pub devices: Vec<Device>,
    /// How many there are in all.
    pub total: usize,
}

impl Device {
    /// Takes over what a change may leave out.
    fn keep(&mut self, old: &Lorawan) {
        let new = &mut self.lorawan;
        new.dev_addr = new.dev_addr.or(old.dev_addr);
        new.nwk_s_key = new.nwk_s_key.take().or_else(|| old.nwk_s_key.clone());
        new.app_s_key = new.app_s_key.take().or_else(|| old.app_s_key.clone());
        new.app_key = new.app_key.take().or_else(|| old.app_key.clone());
        new.last_seen = old.last_seen;
    }
}

pub(crate) fn not_found(app_id: &AppId, dev_id: &DevId) -> Error {
    Error::not_found("Device", format_args!("{app_id}:{dev_id}"))
}

const DEVICES: &str = "handler/device/";

/// Where a device lies.
pub(crate) fn device_key(app_id: &AppId, dev_id: &DevId) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("{DEVICES}{dev_id}"))?)
}

/// Where it says which device has a pair of EUIs; none for a device without an EUI of its own.
pub(super) fn eui_key(device: &Device) -> Result<Option<Key>, Error> {
    let Lorawan { app_eui, dev_eui, .. } = device.lorawan;
    if dev_eui.is_zero() {
        return Ok(None);
    }
    let path = format!("{}eui/{app_eui}-{dev_eui}", application::PREFIX);
    Ok(Some(Key::new(&Tag::application(device.app_id.as_str())?, &path)?))
}
