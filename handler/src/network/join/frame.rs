//! Join requests and join accepts as LoRaWAN 1.0 frames. Numbers are little endian on the air.

use types::{AppEui, AppKey, AppNonce, DevAddr, DevEui, DevNonce, NetId};

use super::crypto;
use crate::{
    Error,
    network::lorawan::crypto::{MIC_BYTES, is_same_mic, mic},
};

const MHDR_JOIN_REQUEST: u8 = 0x00;
const MHDR_JOIN_ACCEPT: u8 = 0x20;
const REQUEST_BYTES: usize = 23;
/// The length of the settings in a join accept, without and with a channel list.
const SETTINGS_BYTES: [usize; 2] = [2, 18];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinRequest {
    pub(crate) app_eui: AppEui,
    pub(crate) dev_eui: DevEui,
    pub(crate) dev_nonce: DevNonce,
    /// The frame without its MIC.
    signed: [u8; REQUEST_BYTES - MIC_BYTES],
    mic: [u8; MIC_BYTES],
}

/// A join accept that the network prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinAccept {
    pub(crate) net_id: NetId,
    pub(crate) dev_addr: DevAddr,
    /// Data rates, delay and perhaps channels, which only the network cares about.
    settings: Vec<u8>,
}

impl JoinRequest {
    /// Parses a frame; [`Error::Invalid`] if it is not a join request.
    pub(crate) fn parse(frame: &[u8]) -> Result<Self, Error> {
        let invalid = || Error::invalid("Activation", "the payload is no join request of LoRaWAN 1.0");
        let frame: &[u8; REQUEST_BYTES] = frame.try_into().map_err(|_| invalid())?;
        let (signed, mic) = frame.split_first_chunk().ok_or_else(invalid)?;
        let [MHDR_JOIN_REQUEST, rest @ ..] = &signed[..] else { return Err(invalid()) };
        let (app_eui, rest) = reversed(rest).ok_or_else(invalid)?;
        let (dev_eui, rest) = reversed(rest).ok_or_else(invalid)?;
        let (dev_nonce, _) = reversed(rest).ok_or_else(invalid)?;
        Ok(Self {
            app_eui: AppEui::new(app_eui),
            dev_eui: DevEui::new(dev_eui),
            dev_nonce: DevNonce::new(dev_nonce),
            signed: *signed,
            mic: mic.try_into().map_err(|_| invalid())?,
        })
    }

    /// The frame as a device with this key would send it.
    pub(super) fn signed_with(&self, key: &AppKey) -> Result<Vec<u8>, Error> {
        Ok([&self.signed[..], &mic(key.as_bytes(), &self.signed)?].concat())
    }

    pub(super) fn is_signed_with(&self, key: &AppKey) -> Result<bool, Error> {
        let expected = mic(key.as_bytes(), &self.signed)?;
        Ok(is_same_mic(&expected, &self.mic))
    }
}

impl JoinAccept {
    /// Parses the network's template: a join accept that is not encrypted. Its nonce and MIC are ignored.
    pub(crate) fn parse(template: &[u8]) -> Result<Self, Error> {
        let invalid = || Error::invalid("Activation", "the response template is no join accept of LoRaWAN 1.0");
        let (content, _) = template.split_last_chunk::<MIC_BYTES>().ok_or_else(invalid)?;
        let (&[head, _, _, _], rest) = content.split_first_chunk().ok_or_else(invalid)?;
        let (net_id, rest) = reversed(rest).ok_or_else(invalid)?;
        let (dev_addr, settings) = reversed(rest).ok_or_else(invalid)?;
        if head != MHDR_JOIN_ACCEPT || !SETTINGS_BYTES.contains(&settings.len()) {
            return Err(invalid());
        }
        Ok(Self { net_id: NetId::new(net_id), dev_addr: DevAddr::new(dev_addr), settings: settings.to_vec() })
    }

    /// The encrypted frame for the device that has this key.
    pub(super) fn encrypt(&self, key: &AppKey, app_nonce: AppNonce) -> Result<Vec<u8>, Error> {
        let mut frame = vec![MHDR_JOIN_ACCEPT];
        frame.extend(app_nonce.as_bytes().iter().rev());
        frame.extend(self.net_id.as_bytes().iter().rev());
        frame.extend(self.dev_addr.as_bytes().iter().rev());
        frame.extend(&self.settings);
        frame.extend(mic(key.as_bytes(), &frame)?);
        crypto::encrypt_join_accept(key, &mut frame[1..])?;
        Ok(frame)
    }
}

/// The first `N` bytes in big-endian order, and the bytes after them.
fn reversed<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    let (&(mut first), rest) = bytes.split_first_chunk()?;
    first.reverse();
    Some((first, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Made with lora-packet 0.9.3, whose documentation has the last accept as its example.
    const KEY: &str = "B6B53F4A168A7A88BDF7EA135CE9CFCA";
    const REQUEST: &str = "00EA0D00D07ED5B37030051C000BA3040085CCC6EBD142";
    const ACCEPTS: [(&str, &str); 2] = [
        ("203A06E5130000432E0126030100000000", "206B43409D6409651A3A7AD303CD5063CE"),
        (
            "203A06E5130000432E01260301184F84E85684B85E84886684586E840000000000",
            "204DD85AE608B87FC4889970B7D2042C9E72959B0057AED6094B16003DF12DE145",
        ),
    ];

    fn key() -> AppKey {
        KEY.parse().unwrap()
    }

    // Conformance: MIC, session keys and join-accept of LoRaWAN 1.0
    #[test]
    fn parses_a_request_and_recognizes_its_key() {
        let mut frame = hex::decode(REQUEST).unwrap();
        let request = JoinRequest::parse(&frame).unwrap();
        assert_eq!(request.app_eui.to_hex(), "70B3D57ED0000DEA");
        assert_eq!(request.dev_eui.to_hex(), "0004A30B001C0530");
        assert_eq!(request.dev_nonce.to_hex(), "CC85");
        assert!(request.is_signed_with(&key()).unwrap());
        assert!(!request.is_signed_with(&AppKey::default()).unwrap());
        for index in 1..frame.len() {
            frame[index] ^= 1;
            assert!(!JoinRequest::parse(&frame).unwrap().is_signed_with(&key()).unwrap(), "byte {index}");
            frame[index] ^= 1;
        }
        frame[19..].fill(0);
        assert_eq!(hex::encode_upper(JoinRequest::parse(&frame).unwrap().signed_with(&key()).unwrap()), REQUEST);
    }

    // Conformance: MIC, session keys and join-accept of LoRaWAN 1.0
    #[test]
    fn encrypts_an_accept_like_an_independent_implementation() {
        for (template, expected) in ACCEPTS {
            let accept = JoinAccept::parse(&hex::decode(template).unwrap()).unwrap();
            assert_eq!((accept.net_id.to_hex(), accept.dev_addr.to_hex()), ("000013".into(), "26012E43".into()));
            let frame = accept.encrypt(&key(), "E5063A".parse().unwrap()).unwrap();
            assert_eq!(hex::encode_upper(frame), expected);
        }
    }

    #[test]
    fn refuses_other_frames() {
        let request = hex::decode(REQUEST).unwrap();
        let mut data = request.clone();
        data[0] = 0x40;
        for frame in [&[][..], &request[1..], &data, &[request.as_slice(), &[0]].concat()] {
            assert!(JoinRequest::parse(frame).is_err(), "{frame:?}");
        }
        let template = hex::decode(ACCEPTS[1].0).unwrap();
        for length in (0..template.len()).filter(|length| *length != 17) {
            assert!(JoinAccept::parse(&template[..length]).is_err(), "{length} bytes");
        }
        assert!(JoinAccept::parse(&request).is_err());
    }

    proptest! {
        #[test]
        fn parses_or_refuses_any_bytes(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            head in prop::sample::select(&[MHDR_JOIN_REQUEST, MHDR_JOIN_ACCEPT][..]),
        ) {
            let frame = [&[head][..], &bytes].concat();
            prop_assert_eq!(JoinRequest::parse(&frame).is_ok(), head == MHDR_JOIN_REQUEST && frame.len() == REQUEST_BYTES);
            prop_assert_eq!(JoinAccept::parse(&frame).is_ok(), head == MHDR_JOIN_ACCEPT && [17, 33].contains(&frame.len()));
        }
    }
}
