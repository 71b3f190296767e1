//! A device.

mod change;
pub(super) mod record;
mod validation;

use std::collections::BTreeMap;

use serde::Deserialize;
use types::{AppEui, AppId, AppKey, AppSKey, DevAddr, DevEui, DevId, DevicePath, NwkSKey, Timestamp};

pub use self::change::Change;
pub(crate) use self::{record::euis, validation::attributes_of};
use crate::Error;

/// A device as the handler stores it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Device {
    /// The application it belongs to.
    pub app_id: AppId,
    /// Its id, unique within the application.
    pub dev_id: DevId,
    /// A description for people, at most 1024 bytes.
    pub description: String,
    /// Degrees north.
    pub latitude: f32,
    /// Degrees east.
    pub longitude: f32,
    /// Metres.
    pub altitude: i32,
    /// The application's own attributes, which are part of every uplink.
    pub attributes: BTreeMap<String, String>,
    /// Its LoRaWAN side.
    pub lorawan: Lorawan,
}

/// The LoRaWAN side of a device. An update that leaves out the address or a key keeps it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Lorawan {
    /// The EUI of its application or join server.
    pub app_eui: AppEui,
    /// Its own EUI; zero for a template.
    pub dev_eui: DevEui,
    /// Its address in the current session.
    pub dev_addr: Option<DevAddr>,
    /// Authenticates frames.
    pub nwk_s_key: Option<NwkSKey>,
    /// Encrypts payloads.
    pub app_s_key: Option<AppSKey>,
    /// The root key, with which it joins.
    pub app_key: Option<AppKey>,
    /// The uplink frame counter.
    pub f_cnt_up: u32,
    /// The downlink frame counter.
    pub f_cnt_down: u32,
    /// True if lower frame counters are accepted.
    pub disable_f_cnt_check: bool,
    /// True if frame counters have 32 bits.
    pub uses32_bit_f_cnt: bool,
    /// Usages that its address must allow: [`Usage`](super::Usage) names, separated by commas.
    pub activation_constraints: String,
    /// Time of the last uplink or join, in nanoseconds since 1970; zero for never.
    pub last_seen: i64,
}

impl Device {
    /// The ids of its application and of itself.
    pub(crate) fn path(&self) -> DevicePath<'_> {
        DevicePath { app_id: &self.app_id, dev_id: &self.dev_id }
    }

    /// Takes over from the stored device what an update may leave out.
    pub(super) fn fill_from(&mut self, stored: &Lorawan) {
        let new = &mut self.lorawan;
        new.dev_addr = new.dev_addr.or(stored.dev_addr);
        new.nwk_s_key = new.nwk_s_key.take().or_else(|| stored.nwk_s_key.clone());
        new.app_s_key = new.app_s_key.take().or_else(|| stored.app_s_key.clone());
        new.app_key = new.app_key.take().or_else(|| stored.app_key.clone());
        new.last_seen = stored.last_seen;
    }

    /// Returns true if it is a template for devices that are registered when they join.
    pub(crate) fn is_template(&self) -> bool {
        self.lorawan.dev_eui.is_zero()
    }

    /// The device to register from this template when one with this EUI joins.
    pub(crate) fn registered_on_join(&self, dev_eui: DevEui, now: Timestamp) -> Result<Self, Error> {
        let mut device = self.clone();
        device.dev_id = format!("{}-{dev_eui}", self.dev_id).to_lowercase().parse()?;
        device.description = format!("Registered on join on {}", now.to_short());
        device.lorawan.dev_eui = dev_eui;
        Ok(device)
    }
}
