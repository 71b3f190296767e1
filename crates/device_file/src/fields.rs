//! The fields of a device, and what other networks call them.

use std::{fmt::Display, str::FromStr};

use api::rest::handler::{Device, LorawanDevice};
use types::{AppKey, AppSKey, NwkSKey};

/// A field of a device.
pub(crate) struct Field {
    /// Its column in CSV, and its member in JSON.
    pub(crate) name: &'static str,
    /// Other columns, in the order in which they count.
    pub(crate) columns: &'static [&'static str],
    /// Path of the field in devices of The Things Stack.
    pub(crate) things_stack: &'static [&'static str],
}

/// The value of a field that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadField {
    /// Its name; empty if the row as a whole cannot be used.
    pub name: &'static str,
    /// The reason, which does not repeat the value: it may be a key.
    pub reason: String,
}

/// Texts by the names of their fields; those that are not there leave a device as it is.
#[derive(Clone, Default)]
pub(crate) struct Cells(Vec<(&'static str, String)>);

/// The keys, which are written only on request.
pub(crate) const KEYS: [&str; 3] = ["nwk_s_key", "app_s_key", "app_key"];
pub(crate) const FRAME_COUNTERS: [&str; 2] = ["f_cnt_up", "f_cnt_down"];

/// `nwk_key` is where ChirpStack has the AppKey of devices with LoRaWAN 1.0.
#[rustfmt::skip]
pub(crate) const FIELDS: [Field; 17] = [
    Field { name: "dev_id", columns: &["id", "device_id"], things_stack: &["/ids/device_id"] },
    Field { name: "app_eui", columns: &["join_eui", "appeui", "joineui"], things_stack: &["/ids/join_eui"] },
    Field { name: "dev_eui", columns: &["deveui", "device_eui"], things_stack: &["/ids/dev_eui"] },
    Field { name: "dev_addr", columns: &["devaddr"], things_stack: &["/session/dev_addr", "/ids/dev_addr"] },
    Field {
        name: "nwk_s_key",
        columns: &["nwkskey", "f_nwk_s_int_key", "nwk_s_enc_key"],
        things_stack: &["/session/keys/f_nwk_s_int_key/key"],
    },
    Field { name: "app_s_key", columns: &["appskey"], things_stack: &["/session/keys/app_s_key/key"] },
    Field { name: "app_key", columns: &["appkey", "nwk_key"], things_stack: &["/root_keys/app_key/key"] },
    Field { name: "f_cnt_up", columns: &["last_f_cnt_up"], things_stack: &["/session/last_f_cnt_up"] },
    Field { name: "f_cnt_down", columns: &["last_n_f_cnt_down", "n_f_cnt_down"], things_stack: &["/session/last_n_f_cnt_down"] },
    Field { name: "disable_f_cnt_check", columns: &["resets_f_cnt", "skip_fcnt_check"], things_stack: &["/mac_settings/resets_f_cnt"] },
    Field { name: "uses32_bit_f_cnt", columns: &["supports_32_bit_f_cnt"], things_stack: &["/mac_settings/supports_32_bit_f_cnt"] },
    Field { name: "activation_constraints", columns: &[], things_stack: &[] },
    Field { name: "description", columns: &["name", "device_name"], things_stack: &["/description", "/name"] },
    Field { name: "latitude", columns: &[], things_stack: &["/locations/user/latitude"] },
    Field { name: "longitude", columns: &[], things_stack: &["/locations/user/longitude"] },
    Field { name: "altitude", columns: &[], things_stack: &["/locations/user/altitude"] },
    Field { name: "attributes", columns: &["tags"], things_stack: &["/attributes"] },
];

impl Cells {
    pub(crate) fn set(&mut self, name: &'static str, text: String) {
        self.0.push((name, text));
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str())
    }

    /// Those of some fields only.
    pub(crate) fn only(&self, names: &[&'static str]) -> Self {
        Self(self.0.iter().filter(|(name, _)| names.contains(name)).cloned().collect())
    }

    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, BadField> {
        let text = self.get(name);
        text.map(parse).transpose().map_err(|reason| BadField { name, reason })
    }

    /// Changes a device as the cells say. Its id stays.
    pub(crate) fn apply(&self, device: &mut Device) -> Result<(), BadField> {
        let mut lorawan = device.lorawan_device.take().unwrap_or_default();
        let applied = self.0.iter().try_for_each(|(name, text)| {
            set(device, &mut lorawan, name, text).map_err(|reason| BadField { name, reason })
        });
        device.lorawan_device = Some(lorawan);
        applied
    }
}

/// Removes the keys of a device.
pub fn remove_keys(lorawan: &mut LorawanDevice) {
    (lorawan.app_key, lorawan.app_s_key, lorawan.nwk_s_key) = (None, None, None);
}

/// Removes keys and a device address that are zero: they mean that the device has none.
pub fn remove_empty_keys(lorawan: &mut LorawanDevice) {
    let LorawanDevice { app_key, app_s_key, nwk_s_key, dev_addr, .. } = lorawan;
    app_key.take_if(|key| key.is_zero());
    app_s_key.take_if(|key| key.is_zero());
    nwk_s_key.take_if(|key| key.is_zero());
    dev_addr.take_if(|address| address.is_zero());
}

fn set(device: &mut Device, lorawan: &mut LorawanDevice, name: &str, text: &str) -> Result<(), String> {
    match name {
        "app_eui" => lorawan.app_eui = parse(text)?,
        "dev_eui" => lorawan.dev_eui = parse(text)?,
        "dev_addr" => lorawan.dev_addr = Some(parse(text)?),
        "nwk_s_key" => lorawan.nwk_s_key = Some(parse(text)?),
        "app_s_key" => lorawan.app_s_key = Some(parse(text)?),
        "app_key" => lorawan.app_key = Some(parse(text)?),
        "f_cnt_up" => lorawan.f_cnt_up = number(text, "a number from 0 to 4294967295")?,
        "f_cnt_down" => lorawan.f_cnt_down = number(text, "a number from 0 to 4294967295")?,
        "disable_f_cnt_check" => lorawan.disable_f_cnt_check = truth(text)?,
        "uses32_bit_f_cnt" => lorawan.uses32_bit_f_cnt = truth(text)?,
        "activation_constraints" => text.clone_into(&mut lorawan.activation_constraints),
        "description" => text.clone_into(&mut device.description),
        "latitude" => device.latitude = degrees(text, 90.0)?,
        "longitude" => device.longitude = degrees(text, 180.0)?,
        "altitude" => device.altitude = number::<f64>(text, "metres, as in 12")?.round() as i32,
        "attributes" => {
            device.attributes =
                serde_json::from_str(text).map_err(|_| r#"must be texts by names, as {"floor":"3"}"#)?;
        }
        // The id, which is set before.
        _ => {}
    }
    Ok(())
}

/// The text of a field; empty if there is nothing to say.
pub(crate) fn get(device: &Device, lorawan: &LorawanDevice, name: &str) -> String {
    let number = |number: u32| if number == 0 { String::new() } else { number.to_string() };
    let degrees = |degrees: f32| if degrees == 0.0 { String::new() } else { degrees.to_string() };
    match name {
        "dev_id" => device.dev_id.clone(),
        // Without it, a device that is imported gets the AppEUI of the application.
        "app_eui" if lorawan.app_eui.is_zero() => "0".repeat(16),
        "app_eui" => lorawan.app_eui.to_hex(),
        "dev_eui" if lorawan.dev_eui.is_zero() => String::new(),
        "dev_eui" => lorawan.dev_eui.to_hex(),
        "dev_addr" => lorawan.dev_addr.map(|address| address.to_hex()).unwrap_or_default(),
        "nwk_s_key" => lorawan.nwk_s_key.as_ref().map(NwkSKey::to_hex).unwrap_or_default(),
        "app_s_key" => lorawan.app_s_key.as_ref().map(AppSKey::to_hex).unwrap_or_default(),
        "app_key" => lorawan.app_key.as_ref().map(AppKey::to_hex).unwrap_or_default(),
        "f_cnt_up" => number(lorawan.f_cnt_up),
        "f_cnt_down" => number(lorawan.f_cnt_down),
        "disable_f_cnt_check" => lorawan.disable_f_cnt_check.to_string(),
        "uses32_bit_f_cnt" => lorawan.uses32_bit_f_cnt.to_string(),
        "activation_constraints" => lorawan.activation_constraints.clone(),
        "description" => device.description.clone(),
        "latitude" => degrees(device.latitude),
        "longitude" => degrees(device.longitude),
        "altitude" if device.altitude == 0 => String::new(),
        "altitude" => device.altitude.to_string(),
        "attributes" if !device.attributes.is_empty() => serde_json::json!(device.attributes).to_string(),
        _ => String::new(),
    }
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn number<T: FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("must be {what}"))
}

fn degrees(text: &str, most: f32) -> Result<f32, String> {
    let degrees: Option<f32> = text.parse().ok();
    let degrees = degrees.filter(|degrees| degrees.abs() <= most);
    degrees.ok_or_else(|| format!("must be a number of degrees from -{most} to {most}, as in 52.37"))
}

fn truth(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}
