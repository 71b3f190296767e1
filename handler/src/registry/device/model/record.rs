//! Stored form of devices: JSON, with their keys sealed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use server::seal::Sealed;
use types::{AppEui, AppKey, AppSKey, DevEui, NwkSKey};

use super::Device;
use crate::{Error, registry::sealer::Sealer};

#[derive(Default, Serialize, Deserialize)]
struct DeviceKeys {
    app_key: Option<AppKey>,
    nwk_s_key: Option<NwkSKey>,
    app_s_key: Option<AppSKey>,
}

/// A device in the store. Older records have no sealed keys, but plain ones in the device.
#[derive(Serialize, Deserialize)]
struct DeviceRecord<'a> {
    #[serde(flatten)]
    device: Cow<'a, Device>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<Sealed>,
}

pub(in crate::registry::device) fn write(sealer: &Sealer, device: &Device) -> Result<Vec<u8>, Error> {
    let mut device = device.clone();
    let keys = take_keys(&mut device).map(|keys| sealer.seal(&aad(&device), &keys)).transpose()?;
    Ok(serde_json::to_vec(&DeviceRecord { device: Cow::Owned(device), keys })?)
}

pub(in crate::registry::device) fn read(sealer: &Sealer, record: &[u8]) -> Result<Device, Error> {
    let DeviceRecord { device, keys } = serde_json::from_slice(record)?;
    let mut device = device.into_owned();
    if let Some(keys) = keys {
        let DeviceKeys { app_key, nwk_s_key, app_s_key } = sealer.open("keys of a device", &aad(&device), &keys)?;
        let lorawan = &mut device.lorawan;
        (lorawan.app_key, lorawan.nwk_s_key, lorawan.app_s_key) = (app_key, nwk_s_key, app_s_key);
    }
    Ok(device)
}

/// The device of a record without its keys: opening them takes longer than everything else.
pub(in crate::registry::device) fn read_without_keys(record: &[u8]) -> Result<Device, Error> {
    Ok(serde_json::from_slice(record)?)
}

/// The AppEUI and the DevEUI in a device's record.
pub(crate) fn euis(record: &[u8]) -> Result<(AppEui, DevEui), Error> {
    read_without_keys(record).map(|device| (device.lorawan.app_eui, device.lorawan.dev_eui))
}

fn take_keys(device: &mut Device) -> Option<DeviceKeys> {
    let lorawan = &mut device.lorawan;
    let keys = DeviceKeys {
        app_key: lorawan.app_key.take(),
        nwk_s_key: lorawan.nwk_s_key.take(),
        app_s_key: lorawan.app_s_key.take(),
    };
    let is_empty = keys.app_key.is_none() && keys.nwk_s_key.is_none() && keys.app_s_key.is_none();
    (!is_empty).then_some(keys)
}

fn aad(device: &Device) -> String {
    format!("device {}:{}", device.app_id, device.dev_id)
}
