//! Stored form of devices: a Protobuf message, a third as long as JSON, with their keys sealed.

mod json;
mod sealed_keys;

use std::collections::BTreeMap;

use prost::Message;
use types::{AppEui, DevAddr, DevEui};

use super::{Device, Lorawan};
use crate::{Error, registry::sealer::Sealer};

/// A device in the store. EUIs and addresses are the numbers of their bytes, most significant first.
#[derive(Clone, PartialEq, Message)]
struct DeviceRecord {
    #[prost(string, tag = "1")]
    app_id: String,
    #[prost(string, tag = "2")]
    dev_id: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(float, tag = "4")]
    latitude: f32,
    #[prost(float, tag = "5")]
    longitude: f32,
    #[prost(sint32, tag = "6")]
    altitude: i32,
    #[prost(btree_map = "string, string", tag = "7")]
    attributes: BTreeMap<String, String>,
    #[prost(fixed64, tag = "8")]
    app_eui: u64,
    #[prost(fixed64, tag = "9")]
    dev_eui: u64,
    #[prost(fixed32, optional, tag = "10")]
    dev_addr: Option<u32>,
    #[prost(uint32, tag = "11")]
    f_cnt_up: u32,
    #[prost(uint32, tag = "12")]
    f_cnt_down: u32,
    #[prost(bool, tag = "13")]
    disable_f_cnt_check: bool,
    #[prost(bool, tag = "14")]
    uses32_bit_f_cnt: bool,
    // Not 15: with it, a record could begin like JSON.
    #[prost(string, tag = "16")]
    activation_constraints: String,
    #[prost(int64, tag = "17")]
    last_seen: i64,
    /// Empty if the device has no keys.
    #[prost(bytes = "vec", tag = "18")]
    sealed_keys: Vec<u8>,
}

pub(in crate::registry::device) fn write(sealer: &Sealer, device: &Device) -> Result<Vec<u8>, Error> {
    let sealed_keys = sealed_keys::seal(sealer, device)?;
    Ok(DeviceRecord { sealed_keys, ..DeviceRecord::from(device) }.encode_to_vec())
}

pub(in crate::registry::device) fn read(sealer: &Sealer, record: &[u8]) -> Result<Device, Error> {
    if json::is_json(record) {
        return json::read(sealer, record);
    }
    let record = decode(record)?;
    let sealed_keys = record.sealed_keys.clone();
    let mut device = record.into_device()?;
    sealed_keys::open(sealer, &mut device, &sealed_keys)?;
    Ok(device)
}

/// The device of a record without its keys: opening them takes longer than everything else.
pub(in crate::registry::device) fn read_without_keys(record: &[u8]) -> Result<Device, Error> {
    if json::is_json(record) { json::read_without_keys(record) } else { decode(record)?.into_device() }
}

/// The AppEUI and the DevEUI in a device's record.
pub(crate) fn euis(record: &[u8]) -> Result<(AppEui, DevEui), Error> {
    read_without_keys(record).map(|device| (device.lorawan.app_eui, device.lorawan.dev_eui))
}

fn decode(record: &[u8]) -> Result<DeviceRecord, Error> {
    DeviceRecord::decode(record).map_err(damaged)
}

fn damaged(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::DeviceRecord(Box::new(source))
}

/// The associated data of the sealed keys, which belong to one device.
fn aad(device: &Device) -> String {
    format!("device {}:{}", device.app_id, device.dev_id)
}

impl From<&Device> for DeviceRecord {
    fn from(device: &Device) -> Self {
        let lorawan = &device.lorawan;
        Self {
            app_id: device.app_id.to_string(),
            dev_id: device.dev_id.to_string(),
            description: device.description.clone(),
            latitude: device.latitude,
            longitude: device.longitude,
            altitude: device.altitude,
            attributes: device.attributes.clone(),
            app_eui: u64::from_be_bytes(*lorawan.app_eui.as_bytes()),
            dev_eui: u64::from_be_bytes(*lorawan.dev_eui.as_bytes()),
            dev_addr: lorawan.dev_addr.map(|dev_addr| u32::from_be_bytes(*dev_addr.as_bytes())),
            f_cnt_up: lorawan.f_cnt_up,
            f_cnt_down: lorawan.f_cnt_down,
            disable_f_cnt_check: lorawan.disable_f_cnt_check,
            uses32_bit_f_cnt: lorawan.uses32_bit_f_cnt,
            activation_constraints: lorawan.activation_constraints.clone(),
            last_seen: lorawan.last_seen,
            sealed_keys: Vec::new(),
        }
    }
}

impl DeviceRecord {
    /// The device without its keys.
    fn into_device(self) -> Result<Device, Error> {
        let lorawan = Lorawan {
            app_eui: AppEui::new(self.app_eui.to_be_bytes()),
            dev_eui: DevEui::new(self.dev_eui.to_be_bytes()),
            dev_addr: self.dev_addr.map(|dev_addr| DevAddr::new(dev_addr.to_be_bytes())),
            f_cnt_up: self.f_cnt_up,
            f_cnt_down: self.f_cnt_down,
            disable_f_cnt_check: self.disable_f_cnt_check,
            uses32_bit_f_cnt: self.uses32_bit_f_cnt,
            activation_constraints: self.activation_constraints,
            last_seen: self.last_seen,
            ..Lorawan::default()
        };
        Ok(Device {
            app_id: self.app_id.try_into().map_err(damaged)?,
            dev_id: self.dev_id.try_into().map_err(damaged)?,
            description: self.description,
            latitude: self.latitude,
            longitude: self.longitude,
            altitude: self.altitude,
            attributes: self.attributes,
            lorawan,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        let attributes = [("ttn-model", "thermometer"), ("floor", "")];
        Device {
            app_id: "app-one".parse().unwrap(),
            dev_id: "dev-one".parse().unwrap(),
            description: "Ein Gerät".to_owned(),
            latitude: -52.375,
            longitude: 4.875,
            altitude: -3,
            attributes: attributes.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            lorawan: Lorawan {
                app_eui: "70B3D57ED0000001".parse().unwrap(),
                dev_eui: "0004A30B001C0531".parse().unwrap(),
                dev_addr: Some(DevAddr::default()),
                f_cnt_up: u32::MAX,
                f_cnt_down: 7,
                disable_f_cnt_check: true,
                uses32_bit_f_cnt: true,
                activation_constraints: "local".to_owned(),
                last_seen: i64::MAX,
                ..Lorawan::default()
            },
        }
    }

    #[test]
    fn a_record_has_everything_but_the_keys() {
        let bytes = DeviceRecord::from(&device()).encode_to_vec();
        assert_eq!(read_without_keys(&bytes).unwrap(), device());
        let empty = Device { lorawan: Lorawan::default(), ..device() };
        assert_eq!(read_without_keys(&DeviceRecord::from(&empty).encode_to_vec()).unwrap(), empty);
    }

    #[test]
    fn a_record_does_not_begin_like_json() {
        assert!(!json::is_json(&DeviceRecord::from(&device()).encode_to_vec()));
    }

    #[test]
    fn a_damaged_record_is_an_error_of_this_service() {
        let bytes = DeviceRecord::from(&device()).encode_to_vec();
        let no_id = DeviceRecord { app_id: String::new(), ..DeviceRecord::from(&device()) }.encode_to_vec();
        for damaged in [&b""[..], &bytes[..bytes.len() - 1], &no_id] {
            let error = read_without_keys(damaged).unwrap_err();
            assert!(matches!(error, Error::DeviceRecord(_)), "{error}");
        }
    }
}
