//! Uplinks as devices send them.

use super::{
    SessionKeys,
    crypto::{Direction, MIC_BYTES, Nonce, is_same_mic},
    fields::{Fields, FrameType},
};
use crate::Error;

const ACK: u8 = 0x20;

/// An uplink whose sender is not verified yet.
#[derive(Clone, Debug)]
pub(crate) struct UplinkFrame {
    fields: Fields,
    /// The frame without its MIC.
    signed: Vec<u8>,
    mic: [u8; MIC_BYTES],
    f_cnt: u32,
}

/// An uplink that a device has certainly sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenedFrame {
    /// The full 32 bits of the frame counter.
    pub(crate) f_cnt: u32,
    pub(crate) is_confirmed: bool,
    /// True if it acknowledges a downlink.
    pub(crate) is_acknowledgement: bool,
    /// Zero for a frame without a payload for the application.
    pub(crate) port: u8,
    /// Decrypted.
    pub(crate) payload: Vec<u8>,
}

impl UplinkFrame {
    /// Parses a frame. `f_cnt` is the full frame counter that the network found; zero means the one in the frame.
    pub(crate) fn parse(frame: &[u8], f_cnt: u32) -> Result<Self, Error> {
        let invalid = |reason: &str| Error::invalid("Uplink", reason);
        let (fields, mic) = Fields::parse(frame).ok_or_else(|| invalid("it is not a data frame of LoRaWAN 1.0"))?;
        if !matches!(fields.frame_type, FrameType::UnconfirmedUp | FrameType::ConfirmedUp) {
            return Err(invalid("it is a downlink"));
        }
        let f_cnt = if f_cnt == 0 { u32::from(fields.f_cnt) } else { f_cnt };
        if f_cnt & 0xffff != u32::from(fields.f_cnt) {
            return Err(invalid("its metadata has the frame counter of another one"));
        }
        Ok(Self { signed: fields.to_bytes(), fields, mic, f_cnt })
    }

    /// Verifies the frame with the keys of a device, and decrypts its payload; [`Error::UplinkMic`] if the device has
    /// not sent it.
    pub(crate) fn open(&self, keys: &SessionKeys<'_>) -> Result<OpenedFrame, Error> {
        let Fields { frame_type, dev_addr, f_ctrl, f_port, .. } = self.fields;
        let nonce = Nonce { direction: Direction::Uplink, dev_addr, f_cnt: self.f_cnt };
        if !is_same_mic(&nonce.mic(keys.nwk_s_key.as_bytes(), &self.signed)?, &self.mic) {
            return Err(Error::UplinkMic);
        }
        let port = f_port.unwrap_or_default();
        // Those on port 0 are for the network.
        let payload = if port > 0 { nonce.crypt(keys.app_s_key.as_bytes(), &self.fields.payload)? } else { Vec::new() };
        let is_confirmed = frame_type == FrameType::ConfirmedUp;
        Ok(OpenedFrame { f_cnt: self.f_cnt, is_confirmed, is_acknowledgement: f_ctrl & ACK != 0, port, payload })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::{AppSKey, NwkSKey};

    use super::*;

    // The first example in the documentation of lora-packet.
    const FRAME: &str = "40F17DBE4900020001954378762B11FF0D";
    const NWK_S_KEY: &str = "44024241ED4CE9A68C6A8BC055233FD3";
    const APP_S_KEY: &str = "EC925802AE430CA77FD3DD73CB2CC588";

    fn open(frame: &[u8], f_cnt: u32) -> Result<OpenedFrame, Error> {
        let (nwk_s_key, app_s_key): (NwkSKey, AppSKey) = (NWK_S_KEY.parse().unwrap(), APP_S_KEY.parse().unwrap());
        UplinkFrame::parse(frame, f_cnt)?.open(&SessionKeys { nwk_s_key: &nwk_s_key, app_s_key: &app_s_key })
    }

    // Conformance: MIC and encryption of LoRaWAN 1.0 data frames, against lora-packet
    #[test]
    fn opens_the_frame_of_an_independent_implementation() {
        let frame = hex::decode(FRAME).unwrap();
        let opened = open(&frame, 2).unwrap();
        let expected = OpenedFrame {
            f_cnt: 2,
            is_confirmed: false,
            is_acknowledgement: false,
            port: 1,
            payload: b"test".to_vec(),
        };
        assert_eq!(opened, expected);
        assert_eq!(open(&frame, 0).unwrap(), expected, "no counter in the metadata");
    }

    #[test]
    fn each_byte_and_the_whole_counter_are_signed() {
        let frame = hex::decode(FRAME).unwrap();
        for index in 0..frame.len() {
            let mut changed = frame.clone();
            changed[index] ^= 1;
            assert!(open(&changed, 0).is_err(), "byte {index}");
        }
        assert!(matches!(open(&frame, 0x0001_0002), Err(Error::UplinkMic)));
        assert!(open(&frame, 3).unwrap_err().to_string().contains("frame counter of another"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), f_cnt in any::<u32>()) {
            prop_assert!(open(&bytes, f_cnt).is_err());
        }
    }
}
