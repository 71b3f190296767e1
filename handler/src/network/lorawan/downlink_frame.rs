//! Downlinks, made from the template of a network.

use super::{
    SessionKeys,
    crypto::{Direction, Nonce},
    fields::{Fields, FrameType},
};
use crate::Error;

const ACK: u8 = 0x20;
const PENDING: u8 = 0x10;

/// A downlink that the network prepared: with the address, the counter, the acknowledgement of the uplink, and MAC
/// commands.
#[derive(Clone, Debug)]
pub(crate) struct DownlinkFrame {
    fields: Fields,
    f_cnt: u32,
}

/// Payload of an application for a downlink frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePayload<'a> {
    pub(crate) port: u8,
    pub(crate) bytes: &'a [u8],
    /// True if the device has to acknowledge it.
    pub(crate) is_confirmed: bool,
    /// True if more downlinks wait for the device.
    pub(crate) has_more: bool,
}

impl DownlinkFrame {
    /// Parses a template, whose MIC is ignored. `f_cnt` is the full frame counter; zero means the one in the template.
    pub(crate) fn from_template(template: &[u8], f_cnt: u32) -> Result<Self, Error> {
        let invalid = |reason: &str| Error::invalid("Response template", reason);
        let (fields, _) = Fields::parse(template).ok_or_else(|| invalid("it is not a data frame of LoRaWAN 1.0"))?;
        if !matches!(fields.frame_type, FrameType::UnconfirmedDown | FrameType::ConfirmedDown) {
            return Err(invalid("it is an uplink"));
        }
        let f_cnt = if f_cnt == 0 { u32::from(fields.f_cnt) } else { f_cnt };
        if f_cnt & 0xffff != u32::from(fields.f_cnt) {
            return Err(invalid("its frame counter is not that of its configuration"));
        }
        Ok(Self { fields, f_cnt })
    }

    /// The full frame counter.
    pub(crate) fn f_cnt(&self) -> u32 {
        self.f_cnt
    }

    /// Returns true if the frame has an acknowledgement or MAC commands, and so is sent without a payload too.
    pub(crate) fn is_needed(&self) -> bool {
        self.fields.f_ctrl & ACK != 0 || !self.fields.f_opts.is_empty()
    }

    /// The whole frame, encrypted and signed.
    pub(crate) fn seal(&self, payload: Option<FramePayload<'_>>, keys: &SessionKeys<'_>) -> Result<Vec<u8>, Error> {
        let nonce = Nonce { direction: Direction::Downlink, dev_addr: self.fields.dev_addr, f_cnt: self.f_cnt };
        let mut fields = Fields { f_port: None, payload: Vec::new(), ..self.fields.clone() };
        if let Some(FramePayload { port, bytes, is_confirmed, has_more }) = payload {
            fields.f_port = Some(port);
            fields.payload = nonce.crypt(keys.app_s_key.as_bytes(), bytes)?;
            if is_confirmed {
                fields.frame_type = FrameType::ConfirmedDown;
            }
            if has_more {
                fields.f_ctrl |= PENDING;
            }
        }
        let mut frame = fields.to_bytes();
        frame.extend(nonce.mic(keys.nwk_s_key.as_bytes(), &frame)?);
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use types::{AppSKey, NwkSKey};

    use super::*;

    fn seal(template: &str, f_cnt: u32, payload: Option<FramePayload<'_>>) -> String {
        let nwk_s_key: NwkSKey = "44024241ED4CE9A68C6A8BC055233FD3".parse().unwrap();
        let app_s_key: AppSKey = "EC925802AE430CA77FD3DD73CB2CC588".parse().unwrap();
        let keys = SessionKeys { nwk_s_key: &nwk_s_key, app_s_key: &app_s_key };
        let frame = DownlinkFrame::from_template(&hex::decode(template).unwrap(), f_cnt).unwrap();
        hex::encode_upper(frame.seal(payload, &keys).unwrap())
    }

    fn payload(is_confirmed: bool, has_more: bool) -> Option<FramePayload<'static>> {
        Some(FramePayload { port: 1, bytes: b"test", is_confirmed, has_more })
    }

    // Conformance: MIC and encryption of LoRaWAN 1.0 data frames, against lora-packet
    #[test]
    fn seals_frames_like_an_independent_implementation() {
        // Made with lora-packet 0.9.3, with the keys of the example in its documentation.
        let acknowledging = seal("60F17DBE492002000100000000", 2, payload(false, false));
        assert_eq!(acknowledging, "60F17DBE49200200011AC7C2BC9D5491E8");
        let confirmed = seal("60F17DBE49A30300020A010500000000", 0x0001_0003, payload(true, true));
        assert_eq!(confirmed, "A0F17DBE49B30300020A010187F28A208B7C97ED");
        let bytes: Vec<u8> = (0..18).collect();
        let long = FramePayload { port: 200, bytes: &bytes, is_confirmed: false, has_more: false };
        let two_blocks = seal("60F17DBE4900FFFF00000000", 0, Some(long));
        assert_eq!(two_blocks, "60F17DBE4900FFFFC883AF2FCE1651B25EF18BBB6AEFA913A1A8FF82C59177");
    }

    #[test]
    fn an_answer_of_the_network_alone_has_no_port() {
        let frame = DownlinkFrame::from_template(&hex::decode("60F17DBE492002000100000000").unwrap(), 0).unwrap();
        assert!(frame.is_needed());
        let sealed = seal("60F17DBE492002000100000000", 0, None);
        assert_eq!((&sealed[..16], sealed.len()), ("60F17DBE49200200", 24));
        let idle = DownlinkFrame::from_template(&hex::decode("60F17DBE490002000100000000").unwrap(), 0).unwrap();
        assert!(!idle.is_needed());
    }

    #[test]
    fn refuses_what_is_no_downlink_or_has_another_counter() {
        for (template, f_cnt) in
            [("40F17DBE4900020000000000", 2), ("60F17DBE49000200", 2), ("60F17DBE4900020000000000", 3)]
        {
            assert!(DownlinkFrame::from_template(&hex::decode(template).unwrap(), f_cnt).is_err(), "{template}");
        }
    }
}
