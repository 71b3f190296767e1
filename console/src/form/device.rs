//! A device as the texts that a form has, and what somebody else changed since the form was opened.

mod draw;
mod entry;
mod field;

use std::collections::BTreeMap;

use api::rest::handler::{Device, LorawanDevice};
use client::handler::HandlerClient;
use serde::{Deserialize, Serialize};
use server::{audit::visible, seal::KeyedHash};
use types::{AppId, DevId};

use crate::{Console, Error, Result};

pub(crate) use self::{
    draw::{Draw, Drawn},
    entry::{DeviceEntry, Generated},
};

/// The activation of a device that joins.
pub(crate) const OTAA: &str = "otaa";
/// The activation of a device that has a session from the beginning.
pub(crate) const ABP: &str = "abp";
/// Stands for the activation if a device gets a new session.
pub(crate) const PERSONALIZE: &str = "personalize";
/// The text of a checkbox that is ticked.
pub(crate) const TICKED: &str = "yes";

/// The fields that show what a device has: their names in forms, and for people.
const SHOWN: [(&str, &str); 11] = [
    ("description", "Description"),
    ("app_eui", "AppEUI"),
    ("dev_eui", "DevEUI"),
    ("activation", "Activation"),
    ("dev_addr", "DevAddr"),
    ("uses_32_bit_f_cnt", "32-bit frame counters"),
    ("disable_f_cnt_check", "Frame counter check disabled"),
    ("latitude", "Latitude"),
    ("longitude", "Longitude"),
    ("altitude", "Altitude"),
    ("attributes", "Attributes"),
];

/// Texts of a form, by the names of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Texts(BTreeMap<String, String>);

/// A device as it was when a form was opened. The form brings it back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Base {
    pub(crate) texts: Texts,
    /// Of the keys that only people change. No page has the keys.
    keys: Option<KeyedHash>,
}

/// A field that somebody else has changed since the form was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) label: &'static str,
    pub(crate) before: String,
    pub(crate) now: String,
    /// The text in the form, if it is neither.
    pub(crate) typed: Option<String>,
}

impl Texts {
    /// The form's texts for this device.
    pub(crate) fn of(device: &Device) -> Self {
        let empty = LorawanDevice::default();
        let lorawan = device.lorawan_device.as_ref().unwrap_or(&empty);
        let tick = |is_ticked: bool| if is_ticked { TICKED.to_owned() } else { String::new() };
        let degrees = |degrees: f32| if degrees == 0.0 { String::new() } else { degrees.to_string() };
        let altitude = if device.altitude == 0 { String::new() } else { device.altitude.to_string() };
        let texts = [
            ("description", field::one_line(&device.description)),
            ("app_eui", lorawan.app_eui.to_hex()),
            ("dev_eui", lorawan.dev_eui.to_hex()),
            ("activation", activation(lorawan).to_owned()),
            ("dev_addr", lorawan.dev_addr.unwrap_or_default().to_hex()),
            ("uses_32_bit_f_cnt", tick(lorawan.uses32_bit_f_cnt)),
            ("disable_f_cnt_check", tick(lorawan.disable_f_cnt_check)),
            ("latitude", degrees(device.latitude)),
            ("longitude", degrees(device.longitude)),
            ("altitude", altitude),
            ("attributes", field::attribute_lines(&device.attributes)),
        ];
        Self(texts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn set(&mut self, name: &str, text: String) {
        self.0.insert(name.to_owned(), text);
    }

    /// The network gives a device that joins its address, so that nobody has changed it.
    fn is_changed(&self, now: &Self, name: &str) -> bool {
        let joins = self.get("activation") == OTAA && now.get("activation") == OTAA;
        self.get(name) != now.get(name) && !(joins && name == "dev_addr")
    }
}

impl Base {
    /// Without a base that can be read, everything counts as changed: nothing is replaced unseen.
    pub(crate) fn read(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> String {
        // Texts can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Changes by somebody else until now, unless they are what was typed: that loses nothing, and may be from this
    /// form, sent before without an answer.
    pub(crate) fn differences(&self, now: &Self, typed: &Texts) -> Vec<Difference> {
        let is_lost = |name: &str| self.texts.is_changed(&now.texts, name) && typed.get(name) != now.texts.get(name);
        let changed = SHOWN.into_iter().filter(|(name, _)| is_lost(name));
        let mut differences: Vec<_> = changed
            .map(|(name, label)| {
                let text = |texts: &Texts| shown(name, texts.get(name));
                let (before, now, typed) = (text(&self.texts), text(&now.texts), text(typed));
                let typed = Some(typed).filter(|typed| *typed != before && *typed != now);
                Difference { label, before, now, typed }
            })
            .collect();
        if self.keys != now.keys {
            let [before, now] = ["original", "changed"].map(str::to_owned);
            differences.push(Difference { label: "Keys", before, now, typed: None });
        }
        differences
    }

    /// The typed texts; where nobody has typed, those of the device now.
    pub(crate) fn merge(&self, now: &Self, mut typed: Texts) -> Texts {
        for (name, _) in SHOWN {
            if typed.get(name) == self.texts.get(name) {
                typed.set(name, now.texts.get(name).to_owned());
            }
        }
        typed
    }
}

impl Console {
    /// The form of a device before anybody types.
    pub(crate) fn base_of(&self, device: &Device) -> Base {
        Base { texts: Texts::of(device), keys: device.lorawan_device.as_ref().map(|lorawan| self.hash_keys(lorawan)) }
    }

    fn hash_keys(&self, lorawan: &LorawanDevice) -> KeyedHash {
        let mut bytes = format!("{}/{}/", lorawan.app_id, lorawan.dev_id).into_bytes();
        bytes.extend(lorawan.app_key.clone().unwrap_or_default().as_bytes());
        // The session keys of a device that joins change by themselves.
        if activation(lorawan) == ABP {
            bytes.extend(lorawan.nwk_s_key.clone().unwrap_or_default().as_bytes());
            bytes.extend(lorawan.app_s_key.clone().unwrap_or_default().as_bytes());
        }
        self.keys.hash("keys of a device", &bytes)
    }
}

/// The device as the handler has it now; not found if there is none, or the user may not see it.
pub(crate) async fn read(handler: &HandlerClient, app_id: &AppId, dev_id: &DevId) -> Result<Device> {
    let device = handler.get_device(app_id, dev_id).await.map_err(|error| Error::hiding("device", error))?;
    Ok(device.try_into()?)
}

/// The name for people of a field in a form.
pub(crate) fn label(name: &str) -> &'static str {
    let all = SHOWN.into_iter().chain(entry::UNSEEN);
    all.into_iter().find(|(known, _)| *known == name).map(|(_, label)| label).unwrap_or_default()
}

/// A device without an application key that has a session does not join.
fn activation(lorawan: &LorawanDevice) -> &'static str {
    let joins = lorawan.app_key.as_ref().is_some_and(|key| !key.is_zero());
    let has_session = lorawan.nwk_s_key.as_ref().is_some_and(|key| !key.is_zero());
    if has_session && !joins { ABP } else { OTAA }
}

/// A text of a field as people read it, on one line.
fn shown(name: &str, text: &str) -> String {
    let text = match (name, text) {
        ("uses_32_bit_f_cnt" | "disable_f_cnt_check", TICKED) => "yes",
        ("uses_32_bit_f_cnt" | "disable_f_cnt_check", _) => "no",
        ("activation", ABP) => "ABP",
        ("activation", PERSONALIZE) => "new ABP session",
        ("activation", OTAA) => "OTAA",
        (_, "") => "–",
        (_, text) => text,
    };
    visible(&text.lines().collect::<Vec<_>>().join(", ")).into_owned()
}

#[cfg(test)]
mod tests {
    use types::{DevAddr, NwkSKey};

    use super::*;

    fn base(description: &str, dev_addr: u8, nwk_s_key: u8) -> Base {
        let lorawan = LorawanDevice {
            dev_addr: Some(DevAddr::new([dev_addr; 4])),
            nwk_s_key: Some(NwkSKey::new([nwk_s_key; 16])),
            ..LorawanDevice::default()
        };
        let device = Device { description: description.to_owned(), lorawan_device: Some(lorawan), ..Device::default() };
        Base { texts: Texts::of(&device), keys: None }
    }

    #[test]
    fn only_what_somebody_else_changed_is_a_difference() {
        let (base, now) = (base("old", 1, 1), base("new", 1, 1));
        let mut typed = base.texts.clone();
        typed.set("description", "mine".to_owned());
        typed.set("latitude", "1.5".to_owned());
        let [difference] = &base.differences(&now, &typed)[..] else { panic!("there is one") };
        assert_eq!((difference.label, difference.before.as_str()), ("Description", "old"));
        assert_eq!((difference.now.as_str(), difference.typed.as_deref()), ("new", Some("mine")));
        assert!(base.differences(&base, &typed).is_empty());
        typed.set("description", "new".to_owned());
        assert!(base.differences(&now, &typed).is_empty(), "it has what was typed already");
        assert_eq!(Base::read(&base.json()).texts, base.texts);
        assert!(!Base::read("<").differences(&base, &typed).is_empty(), "an unknown base replaces nothing");
    }

    #[test]
    fn a_difference_is_on_one_line_and_hides_nothing() {
        assert_eq!(shown("description", "a\u{202e}b\r\nc"), r"a\u202eb, c");
        assert_eq!(shown("attributes", ""), "–");
    }

    #[test]
    fn a_form_that_nobody_touched_comes_back_as_it_was() {
        let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let attributes = [(" a", "two\nlines"), ("b", "")].map(pair).into();
        let device = Device { description: " two\r\nlines ".to_owned(), attributes, ..Device::default() };
        let texts = Texts::of(&device);
        let sent = DeviceEntry::sent(|name| texts.get(name));
        for (name, _) in SHOWN {
            assert_eq!(sent.texts.get(name), texts.get(name), "{name}");
        }
    }

    #[test]
    fn what_was_not_typed_is_what_it_is_now() {
        let (base, now) = (base("old", 1, 1), base("new", 2, 1));
        let mut typed = base.texts.clone();
        typed.set("latitude", "1.5".to_owned());
        let merged = base.merge(&now, typed);
        let texts = ["description", "dev_addr", "latitude"].map(|name| merged.get(name));
        assert_eq!(texts, ["new", "02020202", "1.5"]);
    }

    #[test]
    fn the_address_of_a_device_that_joins_is_nobodys_change() {
        let (joins, again) = (base("", 1, 0), base("", 2, 0));
        assert!(joins.differences(&again, &joins.texts).is_empty());
        let (fixed, moved) = (base("", 1, 1), base("", 2, 1));
        assert_eq!(fixed.differences(&moved, &fixed.texts).len(), 1);
    }
}
