//! Devices as they are kept: as JSON, their keys closed.

use serde::{Deserialize, Serialize};
use server::seal::Sealed;
use types::{AppId, AppKey, AppSKey, DevId, NwkSKey};

use super::devices::Device;
use crate::{Error, sealer::Vault};

/// What the keys of a device are called in errors.
const WHAT: &str = "keys of a device";

/// The keys of a device, which are closed together.
#[derive(Default, Serialize, Deserialize)]
struct DeviceKeys {
    app_key: Option<AppKey>,
    nwk_s_key: Option<NwkSKey>,
    app_s_key: Option<AppSKey>,
}

#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    device: &'a Device,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Sealed>,
}

/// The part of a record that has to be opened; older records have none, and their keys beside the rest.
#[derive(Deserialize)]
struct Closed {
    #[serde(default)]
    keys: Option<Sealed>,
}

/// The record of a device.
pub(super) fn write(vault: &Vault, device: &Device) -> Result<Vec<u8>, Error> {
    let mut device = device.clone();
    let keys = device.take_keys();
    let keys = keys.map(|keys| vault.close(&place(&device.app_id, &device.dev_id), &keys)).transpose()?;
    Ok(serde_json::to_vec(&Record { device: &device, keys })?)
}

/// The device of a record, whole.
pub(super) fn read(vault: &Vault, record: &[u8]) -> Result<Device, Error> {
    let mut device = read_without_keys(record)?;
    if let Closed { keys: Some(keys) } = serde_json::from_slice(record)? {
        let DeviceKeys { app_key, nwk_s_key, app_s_key } =
            vault.show(WHAT, &place(&device.app_id, &device.dev_id), &keys)?;
        let lorawan = &mut device.lorawan;
        (lorawan.app_key, lorawan.nwk_s_key, lorawan.app_s_key) = (app_key, nwk_s_key, app_s_key);
    }
    Ok(device)
}

/// The device of a record without its keys: opening them takes longer than all the rest.
pub(super) fn read_without_keys(record: &[u8]) -> Result<Device, Error> {
    Ok(serde_json::from_slice(record)?)
}

impl Device {
    /// Takes its keys out; none when it has none.
    fn take_keys(&mut self) -> Option<DeviceKeys> {
        let lorawan = &mut self.lorawan;
        let keys = DeviceKeys {
            app_key: lorawan.app_key.take(),
            nwk_s_key: lorawan.nwk_s_key.take(),
            app_s_key: lorawan.app_s_key.take(),
        };
        let is_empty = keys.app_key.is_none() && keys.nwk_s_key.is_none() && keys.app_s_key.is_none();
        (!is_empty).then_some(keys)
    }
}

fn place(app_id: &AppId, dev_id: &DevId) -> String {
    format!("device {app_id}:{dev_id}")
}
