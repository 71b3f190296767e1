//! The random values of a form: the same ones when it is sent again, so that an answer that was lost can be repeated.
//!
//! A page and a draft have only the text of a draw. It tells nobody the values, which come from that text, the user,
//! the device and the key file: nothing is stored, and every console with that file draws the same.

use std::{sync::Arc, time::Duration};

use api::rest::handler::LorawanDevice;
use server::seal::SealingKeys;
use types::{AppId, AppKey, AppSKey, DevEui, DevId, NwkSKey, Timestamp, UserId};

use super::entry::Generated;
use crate::Console;

/// Time for which a form draws the same values, which is longer than anybody takes to fill it in.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Number of characters of the number that is used once.
const NONCE_CHARS: usize = 32;

/// The text that a form brings back: the time at which it was opened, and a number that is used once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draw(String);

/// The random values of a form for one device.
pub(crate) struct Drawn {
    keys: Arc<SealingKeys>,
    context: String,
}

impl Draw {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The draw that a form has brought back; none if it cannot be read or is too old.
    fn read(text: &str, now: Timestamp) -> Option<Self> {
        let (millis, nonce) = text.split_once('-')?;
        let is_nonce = nonce.len() == NONCE_CHARS && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
        let opened = Timestamp::from_millis(millis.parse().ok()?);
        (is_nonce && opened <= now && opened.plus(LIFETIME) > now).then(|| Self(text.to_owned()))
    }
}

impl Console {
    /// The draw of a form that was sent; a new one for any other form.
    pub(crate) fn draw(&self, sent: &str) -> Draw {
        let now = self.clock.now();
        let new = || Draw(format!("{}-{}", now.as_millis(), hex::encode(self.random.array::<{ NONCE_CHARS / 2 }>())));
        Draw::read(sent, now).unwrap_or_else(new)
    }

    /// The outcome of this draw for a device. Nobody else draws the same.
    pub(crate) fn drawn(&self, draw: &Draw, user_id: &UserId, (app_id, dev_id): (&AppId, &DevId)) -> Drawn {
        let context = format!("{user_id}/{app_id}/{dev_id}/{}", draw.as_str());
        Drawn { keys: Arc::clone(&self.keys), context }
    }
}

impl Drawn {
    /// The form for this device, as nobody else's is called.
    pub(crate) fn form(&self) -> &str {
        &self.context
    }

    /// The key with this name.
    pub(super) fn key(&self, name: &str) -> [u8; 16] {
        self.bytes(name)
    }

    /// An EUI outside all assigned blocks: its first byte is zero.
    pub(super) fn dev_eui(&self) -> DevEui {
        let mut bytes = self.bytes::<{ DevEui::LENGTH }>("DevEUI");
        bytes[0] = 0;
        DevEui::new(bytes)
    }

    /// The keys of a device that are from this draw. If there are any, this form has set them.
    pub(super) fn keys_of(&self, lorawan: &LorawanDevice) -> Generated {
        let keys = [
            ("AppKey", lorawan.app_key.as_ref().map(AppKey::as_bytes)),
            ("NwkSKey", lorawan.nwk_s_key.as_ref().map(NwkSKey::as_bytes)),
            ("AppSKey", lorawan.app_s_key.as_ref().map(AppSKey::as_bytes)),
        ];
        let drawn =
            keys.into_iter().filter_map(|(name, key)| Some((name, self.key(name))).filter(|own| key == Some(&own.1)));
        drawn.map(|(name, key)| (name, hex::encode_upper(key))).collect()
    }

    /// The first bytes of a MAC, which has 32.
    fn bytes<const COUNT: usize>(&self, name: &str) -> [u8; COUNT] {
        let mac = self.keys.mac("drawn for a device", format!("{}/{name}", self.context).as_bytes());
        let mut bytes = [0; COUNT];
        bytes.iter_mut().zip(mac.as_ref()).for_each(|(byte, drawn)| *byte = *drawn);
        bytes
    }
}

#[cfg(test)]
impl Drawn {
    /// A draw of tests.
    pub(super) fn of(context: &str) -> Self {
        let keys = SealingKeys::new(server::seal::KeyOwner::Console, &[7; 32]).unwrap();
        Self { keys: Arc::new(keys), context: context.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_the_same_again_and_another_for_each_name_and_context() {
        let drawn = Drawn::of("alice/app/dev/1");
        assert_eq!(drawn.key("AppKey"), Drawn::of("alice/app/dev/1").key("AppKey"));
        assert_ne!(drawn.key("AppKey"), drawn.key("AppSKey"));
        assert_ne!(drawn.key("AppKey"), Drawn::of("alice/app/dev/2").key("AppKey"));
        assert_eq!(drawn.dev_eui().as_bytes()[0], 0);
        let lorawan = LorawanDevice { app_key: Some(AppKey::new(drawn.key("AppKey"))), ..LorawanDevice::default() };
        let keys = drawn.keys_of(&lorawan);
        assert_eq!(keys, [("AppKey", hex::encode_upper(drawn.key("AppKey")))]);
        assert!(Drawn::of("bobby/app/dev/1").keys_of(&lorawan).is_empty());
    }

    #[test]
    fn an_old_draw_and_any_other_text_are_none() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        let nonce = "0".repeat(NONCE_CHARS);
        let at = |time: Timestamp| format!("{}-{nonce}", time.as_millis());
        assert!(Draw::read(&at(now), now).is_some());
        assert!(Draw::read(&at(now.minus(LIFETIME)), now).is_none());
        assert!(Draw::read(&at(now.plus(Duration::from_millis(1))), now).is_none());
        for text in ["", "-", "1000000000000-", &nonce, &format!("x-{nonce}"), "1000000000000-<b>"] {
            assert!(Draw::read(text, now).is_none(), "{text}");
        }
    }
}
