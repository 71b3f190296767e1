//! Reports of The Things Stack about a downlink, with the payload as the formatter of downlinks decodes it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bridge::{codec::outcome::Decoded, message::raw_object::RawObject};
use serde_json::value::to_raw_value;

/// An `ApplicationUp` about a downlink.
pub(crate) struct DownlinkEvent<'a> {
    members: RawObject<'a>,
    /// The member that reports the outcome of the downlink.
    kind: &'static str,
    /// The object around a failed downlink, which also has the error; `None` for other kinds.
    failure: Option<RawObject<'a>>,
    downlink: RawObject<'a>,
    pub(crate) port: u8,
    pub(crate) payload: Vec<u8>,
}

impl<'a> DownlinkEvent<'a> {
    /// The kinds of messages, by the end of their topics, for which The Things Stack decodes the payload.
    pub(crate) fn kind(rest: &str) -> Option<&'static str> {
        Some(match rest {
            "down/queued" => "downlink_queued",
            "down/sent" => "downlink_sent",
            "down/ack" => "downlink_ack",
            "down/nack" => "downlink_nack",
            "down/failed" => "downlink_failed",
            _ => return None,
        })
    }

    /// None for a message with nothing to decode.
    pub(crate) fn parse(kind: &'static str, message: &'a [u8]) -> Option<Self> {
        let members = RawObject::parse(message).ok()?;
        let inner = RawObject::parse(members.parsed(kind)?.get().as_bytes()).ok()?;
        let (downlink, failure) = match kind {
            "downlink_failed" => (RawObject::parse(inner.parsed("downlink")?.get().as_bytes()).ok()?, Some(inner)),
            _ => (inner, None),
        };
        // The one that the application itself sent stays.
        if kind == "downlink_queued" && downlink.has("decoded_payload") {
            return None;
        }
        let payload: String = downlink.get("frm_payload")?;
        let payload = STANDARD.decode(payload).ok()?;
        let port = if downlink.has("f_port") { downlink.get("f_port")? } else { 0 };
        Some(Self { members, kind, failure, downlink, port, payload })
    }

    /// Returns the ids that tie the message to The Things Stack's own events about it.
    pub(crate) fn correlation_ids(&self) -> Vec<String> {
        self.members.get("correlation_ids").unwrap_or_default()
    }

    /// The message with this decoded payload.
    pub(crate) fn into_json(mut self, Decoded { object, warnings }: Decoded) -> serde_json::Result<Vec<u8>> {
        self.downlink.remove("decoded_payload_warnings");
        // Each behind the payload, so that the last one comes first.
        if !warnings.is_empty() {
            self.downlink.set("decoded_payload_warnings", to_raw_value(&warnings)?, "frm_payload");
        }
        if let Some(object) = object {
            self.downlink.set("decoded_payload", object, "frm_payload");
        }
        let mut inner = to_raw_value(&self.downlink)?;
        if let Some(mut failure) = self.failure {
            failure.set("downlink", inner, "");
            inner = to_raw_value(&failure)?;
        }
        self.members.set(self.kind, inner, "");
        serde_json::to_vec(&self.members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn decoded(kind: &'static str, message: &str) -> Option<String> {
        let event = DownlinkEvent::parse(kind, message.as_bytes())?;
        assert_eq!((event.port, event.payload.as_slice()), (15, &[0xbe, 0xef][..]));
        let object = Some(RawValue::from_string(r#"{"n":1.0}"#.to_owned()).unwrap());
        let decoded = Decoded { object, warnings: vec!["w".to_owned()] };
        Some(String::from_utf8(event.into_json(decoded).unwrap()).unwrap())
    }

    #[test]
    fn the_payload_is_decoded_and_everything_else_stays() {
        const DOWNLINK: &str = r#"{"f_port":15,"frm_payload":"vu8=","priority":"HIGH","new":1e0}"#;
        const DECODED: &str = r#"{"f_port":15,"frm_payload":"vu8=","decoded_payload":{"n":1.0},"decoded_payload_warnings":["w"],"priority":"HIGH","new":1e0}"#;
        for kind in ["downlink_queued", "downlink_sent", "downlink_ack", "downlink_nack"] {
            let message = format!(r#"{{"new":1.50,"{kind}":{DOWNLINK},"x":[]}}"#);
            assert_eq!(decoded(kind, &message).unwrap(), message.replace(DOWNLINK, DECODED));
        }
        let message = format!(r#"{{"downlink_failed":{{"downlink":{DOWNLINK},"error":{{"code":3}}}}}}"#);
        assert_eq!(decoded("downlink_failed", &message).unwrap(), message.replace(DOWNLINK, DECODED));
    }

    #[test]
    fn a_message_without_a_payload_has_nothing_to_decode() {
        for (kind, message) in [
            ("downlink_sent", "{}"),
            ("downlink_sent", "not json"),
            ("downlink_sent", r#"{"downlink_ack":{"f_port":1,"frm_payload":"vu8="}}"#),
            ("downlink_sent", r#"{"downlink_sent":{"f_port":1}}"#),
            ("downlink_sent", r#"{"downlink_sent":{"f_port":300,"frm_payload":"vu8="}}"#),
            ("downlink_failed", r#"{"downlink_failed":{"error":{}}}"#),
            ("downlink_queued", r#"{"downlink_queued":{"frm_payload":"vu8=","decoded_payload":{"n":2}}}"#),
        ] {
            assert!(DownlinkEvent::parse(kind, message.as_bytes()).is_none(), "{message}");
        }
    }
}
