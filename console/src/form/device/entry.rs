//! An entry in the form of a device, and the device that it makes.

use api::rest::handler::{Device, LorawanDevice};
use client::handler::HandlerClient;
use types::{
    ALTITUDES, AppEui, AppId, AppKey, AppSKey, DevAddr, DevEui, DevId, Kind, Kinded, LATITUDES, LONGITUDES, NwkSKey,
    Secret,
};

use super::{
    ABP, Drawn, OTAA, PERSONALIZE, SHOWN, TICKED, Texts, activation,
    field::{attributes, bytes, degrees, euis, invalid, number, one_line},
};
use crate::{Error, Result};

/// The fields whose texts are not those of a stored device.
pub(super) const UNSEEN: [(&str, &str); 7] = [
    ("dev_id", "Device id"),
    ("qr", "QR code"),
    ("f_cnt_up", "Uplink counter"),
    ("f_cnt_down", "Downlink counter"),
    ("app_key", "AppKey"),
    ("nwk_s_key", "NwkSKey"),
    ("app_s_key", "AppSKey"),
];
/// Those that no page has.
const KEYS: [&str; 3] = ["app_key", "nwk_s_key", "app_s_key"];

/// Generated values that nobody typed, by their names for people. Only the answer to the form shows it.
pub(crate) type Generated = Vec<(&'static str, String)>;

/// The entry in a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceEntry {
    /// Texts that a page may show again.
    pub(crate) texts: Texts,
    keys: [Secret; 3],
}

impl DeviceEntry {
    /// The entry in a sent form, whose `value` is empty where nothing was typed.
    pub(crate) fn sent<'a>(value: impl Fn(&str) -> &'a str) -> Self {
        // Browsers send each line end with two characters.
        let typed = |name: &str| value(name).trim().replace("\r\n", "\n");
        let mut texts = Texts::default();
        let shown = SHOWN.into_iter().chain(UNSEEN).filter(|(name, _)| !KEYS.contains(name));
        for (name, _) in shown {
            texts.set(name, typed(name));
        }
        Self { texts, keys: KEYS.map(|name| Secret::new(typed(name))) }
    }

    pub(crate) fn dev_id(&self) -> Result<DevId> {
        let must = || "must have 2 to 36 lowercase letters, digits, dashes or underscores".to_owned();
        self.texts.get("dev_id").parse().map_err(|_| invalid("Device id", must()))
    }

    /// Fills in the EUIs of the code, if one was typed.
    pub(crate) fn read_code(&mut self) -> Result<()> {
        if self.texts.get("qr").is_empty() {
            return Ok(());
        }
        let (app_eui, dev_eui) = euis(self.texts.get("qr"))?;
        for (name, what, eui) in [("app_eui", "AppEUI", app_eui.to_hex()), ("dev_eui", "DevEUI", dev_eui.to_hex())] {
            let typed: AppEui = bytes(what, self.texts.get(name), AppEui::LENGTH)?;
            if !typed.is_zero() && typed.to_hex() != eui {
                return Err(invalid(what, format!("must be empty or {eui}, as in the QR code")));
            }
            self.texts.set(name, eui);
        }
        Ok(())
    }

    /// A new device, and what was generated for it.
    pub(crate) async fn new_device(
        &self,
        app_id: &AppId,
        handler: &HandlerClient,
        drawn: &Drawn,
    ) -> Result<(Device, Generated)> {
        let (app_id, dev_id) = (app_id.to_string(), self.dev_id()?.to_string());
        let lorawan = LorawanDevice { app_id: app_id.clone(), dev_id: dev_id.clone(), ..LorawanDevice::default() };
        let mut device = Device { app_id, dev_id, lorawan_device: Some(lorawan), ..Device::default() };
        let mut texts = self.texts.clone();
        let mut generated = Generated::new();
        if texts.get("dev_eui").is_empty() {
            let dev_eui = drawn.dev_eui().to_hex();
            generated.push(("DevEUI", dev_eui.clone()));
            texts.set("dev_eui", dev_eui);
        }
        let entry = Self { texts, keys: self.keys.clone() };
        generated.extend(entry.put_into(&mut device, None, (handler, drawn)).await?);
        Ok((device, generated))
    }

    /// Changes a device. Returns what was generated.
    pub(crate) async fn change(
        &self,
        device: &mut Device,
        handler: &HandlerClient,
        drawn: &Drawn,
    ) -> Result<Generated> {
        let before = device.lorawan_device.as_ref().map(activation);
        self.put_into(device, before, (handler, drawn)).await
    }

    /// The generated values of a device if this form has set its keys already, and the answer may be lost; none if it
    /// has not.
    pub(crate) fn generated_before(&self, device: &Device, drawn: &Drawn) -> Option<Generated> {
        let lorawan = device.lorawan_device.as_ref()?;
        let keys = drawn.keys_of(lorawan);
        if keys.is_empty() {
            return None;
        }
        let typed: Option<DevAddr> = bytes("DevAddr", self.texts.get("dev_addr"), DevAddr::LENGTH).ok();
        let dev_eui = Some(lorawan.dev_eui).filter(|_| self.texts.get("dev_eui").is_empty());
        let dev_addr = lorawan.dev_addr.filter(|dev_addr| activation(lorawan) == ABP && typed != Some(*dev_addr));
        let dev_eui = dev_eui.map(|dev_eui| ("DevEUI", dev_eui.to_hex()));
        let dev_addr = dev_addr.map(|dev_addr| ("DevAddr", dev_addr.to_hex()));
        Some(dev_eui.into_iter().chain(keys).chain(dev_addr).collect())
    }

    async fn put_into(
        &self,
        device: &mut Device,
        before: Option<&str>,
        (handler, drawn): (&HandlerClient, &Drawn),
    ) -> Result<Generated> {
        self.put_texts(device)?;
        let lorawan = device.lorawan_device.get_or_insert_default();
        let (generated, wants_address) = self.put_lorawan(lorawan, before, drawn)?;
        if wants_address {
            let dev_addr = handler.get_dev_addr(&usage(&lorawan.activation_constraints)).await;
            let dev_addr = dev_addr.map_err(not_assigned)?;
            lorawan.dev_addr = Some(dev_addr);
            return Ok([generated, vec![("DevAddr", dev_addr.to_hex())]].concat());
        }
        Ok(generated)
    }

    fn put_texts(&self, device: &mut Device) -> Result<()> {
        let text = |name| self.texts.get(name);
        // A form has it on one line.
        if text("description") != one_line(&device.description) {
            device.description = text("description").to_owned();
        }
        device.latitude = degrees("Latitude", text("latitude"), &LATITUDES)?;
        device.longitude = degrees("Longitude", text("longitude"), &LONGITUDES)?;
        device.altitude = number("Altitude", text("altitude"), &ALTITUDES)?.unwrap_or_default();
        device.attributes = attributes(text("attributes"), &device.attributes)?;
        Ok(())
    }

    /// Returns what was generated, and whether the handler is to assign an address.
    fn put_lorawan(
        &self,
        lorawan: &mut LorawanDevice,
        before: Option<&str>,
        drawn: &Drawn,
    ) -> Result<(Generated, bool)> {
        let text = |name| self.texts.get(name);
        let app_eui: AppEui = bytes("AppEUI", text("app_eui"), AppEui::LENGTH)?;
        if app_eui.is_zero() && !lorawan.app_eui.is_zero() {
            return Err(invalid("AppEUI", format!("must not be removed: the device joins with {}", lorawan.app_eui)));
        }
        lorawan.app_eui = app_eui;
        lorawan.dev_eui = dev_eui(text("dev_eui"), lorawan.dev_eui, before.is_none())?;
        lorawan.uses32_bit_f_cnt = text("uses_32_bit_f_cnt") == TICKED;
        lorawan.disable_f_cnt_check = text("disable_f_cnt_check") == TICKED;
        let is_new_session = text("activation") == PERSONALIZE || before != Some(text("activation"));
        let old = (lorawan.f_cnt_up, lorawan.f_cnt_down);
        let (up, down) = if is_new_session { (0, 0) } else { old };
        lorawan.f_cnt_up = number("Uplink counter", text("f_cnt_up"), &(0..=u32::MAX))?.unwrap_or(up);
        lorawan.f_cnt_down = number("Downlink counter", text("f_cnt_down"), &(0..=u32::MAX))?.unwrap_or(down);
        match text("activation") {
            OTAA => self.put_join(lorawan, before, drawn).map(|generated| (generated, false)),
            ABP | PERSONALIZE => self.put_session(lorawan, is_new_session, drawn),
            _ => Err(invalid("Activation", "must be one of the choices".to_owned())),
        }
    }

    /// The keys of a device that joins. A session that it has stays, unless it had one from the beginning.
    fn put_join(&self, lorawan: &mut LorawanDevice, before: Option<&str>, drawn: &Drawn) -> Result<Generated> {
        let [app_key, nwk_s_key, app_s_key] = self.keys()?;
        let stored = lorawan.dev_addr.unwrap_or_default();
        let dev_addr: DevAddr = bytes("DevAddr", self.texts.get("dev_addr"), DevAddr::LENGTH)?;
        // What is left out stays as it is: a device that joins at this moment keeps its session.
        lorawan.dev_addr = Some(dev_addr).filter(|dev_addr| !dev_addr.is_zero() && *dev_addr != stored);
        lorawan.nwk_s_key = nwk_s_key.map(NwkSKey::new);
        lorawan.app_s_key = app_s_key.map(AppSKey::new);
        if before == Some(ABP) {
            lorawan.dev_addr = Some(lorawan.dev_addr.unwrap_or_default());
            lorawan.nwk_s_key.get_or_insert_default();
            lorawan.app_s_key.get_or_insert_default();
        }
        let is_missing = app_key.is_none() && before != Some(OTAA);
        lorawan.app_key = if is_missing { Some(drawn.key("AppKey")) } else { app_key }.map(AppKey::new);
        let generated = lorawan.app_key.iter().filter(|_| is_missing).map(|key| ("AppKey", key.to_hex()));
        Ok(generated.collect())
    }

    /// The session of a device that does not join.
    fn put_session(&self, lorawan: &mut LorawanDevice, is_new: bool, drawn: &Drawn) -> Result<(Generated, bool)> {
        let [app_key, nwk_s_key, app_s_key] = self.keys()?;
        if app_key.is_some() {
            return Err(invalid("AppKey", "must be empty for an ABP device".to_owned()));
        }
        let stored = lorawan.dev_addr.unwrap_or_default();
        let dev_addr: DevAddr = bytes("DevAddr", self.texts.get("dev_addr"), DevAddr::LENGTH)?;
        let wants_address = dev_addr.is_zero() || (is_new && dev_addr == stored);
        let mut generated = Generated::new();
        let mut key = |name: &'static str, typed: Option<[u8; 16]>| {
            let random = || {
                let key = drawn.key(name);
                generated.push((name, hex::encode_upper(key)));
                key
            };
            if is_new { Some(typed.unwrap_or_else(random)) } else { typed }
        };
        lorawan.nwk_s_key = key("NwkSKey", nwk_s_key).map(NwkSKey::new);
        lorawan.app_s_key = key("AppSKey", app_s_key).map(AppSKey::new);
        lorawan.app_key = Some(AppKey::default());
        lorawan.dev_addr = Some(dev_addr);
        Ok((generated, wants_address))
    }

    /// The keys that were typed.
    fn keys(&self) -> Result<[Option<[u8; 16]>; 3]> {
        let [app_key, nwk_s_key, app_s_key] = &self.keys;
        let key = |what, typed: &Secret| -> Result<Option<[u8; 16]>> {
            let key: AppKey = bytes(what, typed.expose(), AppKey::LENGTH)?;
            match (typed.expose(), key.is_zero()) {
                ("", _) => Ok(None),
                // They would stand for no key.
                (_, true) => Err(invalid(what, "must not be all zeros".to_owned())),
                (_, false) => Ok(Some(*key.as_bytes())),
            }
        };
        Ok([key("AppKey", app_key)?, key("NwkSKey", nwk_s_key)?, key("AppSKey", app_s_key)?])
    }
}

/// A new device has an EUI, and one that has an EUI keeps one: without it, it would be a template for devices that join.
fn dev_eui(typed: &str, stored: DevEui, is_new: bool) -> Result<DevEui> {
    let dev_eui: DevEui = bytes("DevEUI", typed, DevEui::LENGTH)?;
    match dev_eui.is_zero() {
        true if is_new => Err(invalid("DevEUI", "must not be all zeros".to_owned())),
        true if !stored.is_zero() => Err(invalid("DevEUI", "must not be removed".to_owned())),
        _ => Ok(dev_eui),
    }
}

/// Handlers without a prefix for such devices assign no address to them.
fn not_assigned(error: client::Error) -> Error {
    match error.kind() {
        Kind::NotFound => {
            invalid("DevAddr", "must be entered: the handler has no addresses for ABP devices".to_owned())
        }
        _ => error.into(),
    }
}

/// Returns the uses of the address of a device that does not join.
fn usage(constraints: &str) -> Vec<&str> {
    let others = constraints.split(',').map(str::trim).filter(|usage| !usage.is_empty() && *usage != ABP);
    others.chain([ABP]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EUI: (&str, &str) = ("dev_eui", "0102030405060708");
    const KEY: &str = "000102030405060708090A0B0C0D0E0F";

    fn entry(texts: &[(&str, &str)]) -> DeviceEntry {
        let find = |name: &str| texts.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| *text);
        DeviceEntry::sent(find)
    }

    fn put(
        texts: &[(&str, &str)],
        stored: LorawanDevice,
        before: Option<&str>,
    ) -> Result<(LorawanDevice, Generated, bool)> {
        let mut lorawan = stored;
        let (generated, wants_address) = entry(texts).put_lorawan(&mut lorawan, before, &Drawn::of("test"))?;
        Ok((lorawan, generated, wants_address))
    }

    #[test]
    fn a_device_that_joins_has_a_key_and_a_personalized_one_has_a_session() {
        let (joins, generated, wants_address) =
            put(&[EUI, ("activation", OTAA)], LorawanDevice::default(), None).unwrap();
        assert_eq!((generated.len(), wants_address), (1, false));
        assert_eq!(joins.app_key.clone().unwrap().to_hex(), generated[0].1);
        let (typed, generated, _) =
            put(&[EUI, ("activation", OTAA), ("app_key", KEY)], LorawanDevice::default(), None).unwrap();
        assert!(typed.app_key.unwrap().to_hex() == KEY && generated.is_empty());

        let (session, generated, wants_address) =
            put(&[EUI, ("activation", ABP), ("nwk_s_key", KEY)], LorawanDevice::default(), None).unwrap();
        assert_eq!((generated.len(), generated[0].0, wants_address), (1, "AppSKey", true));
        assert!(session.nwk_s_key.unwrap().to_hex() == KEY && session.app_key.unwrap().is_zero());
        let zeros = "0".repeat(32);
        for (texts, what) in [
            (&[EUI, ("activation", ABP), ("app_key", KEY)][..], "AppKey"),
            (&[EUI, ("activation", OTAA), ("app_key", &zeros)], "AppKey"),
            (&[EUI, ("activation", "<b>")], "Activation"),
            (&[("dev_eui", &zeros[..16]), ("activation", OTAA)], "DevEUI"),
        ] {
            let error = put(texts, LorawanDevice::default(), None).unwrap_err();
            assert!(error.to_string().starts_with(what), "{error}");
        }
    }

    #[test]
    fn what_is_left_empty_stays_until_there_is_a_new_session() {
        let dev_addr = DevAddr::new([1; 4]);
        let stored = LorawanDevice { dev_addr: Some(dev_addr), f_cnt_up: 7, ..LorawanDevice::default() };
        let same = [("activation", ABP), ("dev_addr", "01010101"), ("f_cnt_down", "3")];
        let (kept, generated, wants_address) = put(&same, stored.clone(), Some(ABP)).unwrap();
        assert!(generated.is_empty() && !wants_address && kept.nwk_s_key.is_none());
        assert_eq!((kept.dev_addr, kept.f_cnt_up, kept.f_cnt_down), (Some(dev_addr), 7, 3));

        let named = LorawanDevice { dev_eui: DevEui::new([1; 8]), ..stored.clone() };
        assert!(put(&same, named, Some(ABP)).is_err(), "its EUI is not removed");

        let new = [("activation", PERSONALIZE), ("dev_addr", "01010101")];
        let (renewed, generated, wants_address) = put(&new, stored.clone(), Some(ABP)).unwrap();
        assert_eq!((generated.len(), wants_address, renewed.f_cnt_up), (2, true, 0));

        let (joins, generated, _) = put(&[("activation", OTAA)], stored, Some(ABP)).unwrap();
        assert_eq!((generated.len(), joins.dev_addr, joins.f_cnt_up), (1, Some(DevAddr::default()), 0));
        assert!(joins.nwk_s_key.unwrap().is_zero());
    }

    #[test]
    fn what_a_form_generated_is_generated_again() {
        let texts = [("activation", ABP), ("nwk_s_key", KEY), EUI];
        let (mut lorawan, generated, _) = put(&texts, LorawanDevice::default(), None).unwrap();
        lorawan.dev_addr = Some(DevAddr::new([1; 4]));
        let device = Device { lorawan_device: Some(lorawan), ..Device::default() };
        // A draft has no keys that were typed.
        let again = entry(&[("activation", ABP), EUI]).generated_before(&device, &Drawn::of("test")).unwrap();
        assert_eq!(again, [generated[0].clone(), ("DevAddr", "01010101".to_owned())]);
        assert!(entry(&texts).generated_before(&device, &Drawn::of("another")).is_none());
    }

    #[test]
    fn a_code_fills_in_the_euis_and_does_not_replace_them() {
        let code = ("qr", "LW:D0:1122334455667788:AABBCCDDEEFF0011:AABB1122");
        let mut filled = entry(&[code]);
        filled.read_code().unwrap();
        assert_eq!(filled.texts.get("dev_eui"), "AABBCCDDEEFF0011");
        let mut other = entry(&[code, ("app_eui", "0000000000000001")]);
        assert!(other.read_code().unwrap_err().to_string().starts_with("AppEUI not valid"));
    }
}
