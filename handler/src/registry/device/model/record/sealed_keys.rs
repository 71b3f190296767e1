//! The keys of a device, sealed: a byte whose bits say which of them it has, then the bytes of each.

use server::seal::SealError;
use types::{AppKey, AppSKey, NwkSKey};
use zeroize::Zeroizing;

use super::{Device, aad};
use crate::{Error, registry::sealer::Sealer};

/// The name of the secret in errors.
const WHAT: &str = "keys of a device";
const KEY_BYTES: usize = AppKey::LENGTH;

/// Seals the keys of a device; nothing if it has none.
pub(super) fn seal(sealer: &Sealer, device: &Device) -> Result<Vec<u8>, Error> {
    let lorawan = &device.lorawan;
    let keys = [
        lorawan.app_key.as_ref().map(AppKey::as_bytes),
        lorawan.nwk_s_key.as_ref().map(NwkSKey::as_bytes),
        lorawan.app_s_key.as_ref().map(AppSKey::as_bytes),
    ];
    if keys.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    // With room for all, so that nothing is copied and left behind.
    let mut plain = Zeroizing::new(Vec::with_capacity(1 + keys.len() * KEY_BYTES));
    plain.push((0..).zip(&keys).map(|(bit, key)| u8::from(key.is_some()) << bit).sum());
    keys.into_iter().flatten().for_each(|key| plain.extend_from_slice(key));
    sealer.seal_bytes(&aad(device), &plain)
}

/// Puts the keys that were sealed with a device back into it.
pub(super) fn open(sealer: &Sealer, device: &mut Device, sealed: &[u8]) -> Result<(), Error> {
    if sealed.is_empty() {
        return Ok(());
    }
    let plain = sealer.open_bytes(WHAT, &aad(device), sealed)?;
    let [app_key, nwk_s_key, app_s_key] = parse(&plain).ok_or(SealError::Sealed(WHAT))?;
    let lorawan = &mut device.lorawan;
    lorawan.app_key = app_key.map(AppKey::new);
    lorawan.nwk_s_key = nwk_s_key.map(NwkSKey::new);
    lorawan.app_s_key = app_s_key.map(AppSKey::new);
    Ok(())
}

/// The three keys of opened bytes; none if they are not what [`seal`] has sealed.
fn parse(plain: &[u8]) -> Option<[Option<[u8; KEY_BYTES]>; 3]> {
    let (present, mut rest) = plain.split_first()?;
    let mut keys = [None; 3];
    for (bit, key) in keys.iter_mut().enumerate() {
        if present >> bit & 1 == 1 {
            let (bytes, after) = rest.split_first_chunk()?;
            (*key, rest) = (Some(*bytes), after);
        }
    }
    (present >> keys.len() == 0 && rest.is_empty()).then_some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_whole_keys() {
        let key = |byte: u8| [byte; KEY_BYTES];
        assert_eq!(parse(&[&[0b101][..], &key(1), &key(2)].concat()), Some([Some(key(1)), None, Some(key(2))]));
        for damaged in [&b""[..], &[0b1], &[&[0b1][..], &key(1)[1..]].concat(), &[0, 0], &[0b1000], b"{}"] {
            assert_eq!(parse(damaged), None, "{damaged:?}");
        }
    }
}
