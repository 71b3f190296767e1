//! A message in the live view.

use client::data::{DeviceEventName, Message};
use serde::Serialize;
use server::audit::visible;
use types::{DevId, HexBytes, Metadata, Timestamp, Uplink};

use crate::messages::fields::spaced;

/// Maximum number of characters shown of the fields. History has the rest.
const TEXT_CHARS_MAX: usize = 1000;
/// Maximum number of bytes shown of the payload.
const PAYLOAD_BYTES_MAX: usize = 64;

/// A message, as far as it fits on a line.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Entry {
    device: String,
    /// RFC 3339.
    time: String,
    /// `up`, or the name of an event.
    pub(super) kind: String,
    pub(super) port: Option<u32>,
    payload: String,
    /// The fields, or what went wrong.
    pub(super) text: String,
    pub(super) failed: bool,
    /// True if no device has sent it, as far as the message tells.
    simulated: bool,
}

impl Entry {
    /// A message with its whole text. One that does not say its time gets the time of its arrival, `now`.
    pub(super) fn new(dev_id: &DevId, message: &Message, now: Timestamp) -> Self {
        let time = time(message).unwrap_or(now).to_rfc3339();
        let entry = Self { device: dev_id.to_string(), time, ..Self::default() };
        match message {
            Message::Uplink(uplink) => Self {
                kind: "up".to_owned(),
                port: Some(uplink.port.into()),
                payload: hex(uplink.payload_raw.as_deref()),
                text: uplink.payload_fields.as_ref().map(|fields| fields.get().to_owned()).unwrap_or_default(),
                simulated: is_simulated(uplink),
                ..entry
            },
            Message::Error(error) => entry.event(DeviceEventName::UpErrors, error.error.clone()),
            Message::Activation(activation) => {
                let failed = activation.error.is_some();
                let name = if failed { DeviceEventName::ActivationErrors } else { DeviceEventName::Activations };
                entry.event(name, json(activation))
            }
            Message::Downlink(name, event) => entry.event(*name, json(event)),
            Message::Device(name, event) => entry.event(*name, json(event)),
            Message::Silent(silent) => entry.event(DeviceEventName::Silent, json(silent)),
            Message::Field { path, value } => {
                Self { kind: format!("up/{path}"), text: value.get().to_owned(), ..entry }
            }
            Message::Unknown(bytes) => {
                Self { kind: "unknown".to_owned(), text: String::from_utf8_lossy(bytes).into_owned(), ..entry }
            }
        }
    }

    fn event(self, name: DeviceEventName, text: String) -> Self {
        use DeviceEventName::{ActivationErrors, DownErrors, UpErrors};
        let failed = matches!(name, ActivationErrors | DownErrors | UpErrors);
        Self { kind: name.as_str().to_owned(), text, failed, ..self }
    }

    /// Returns true for the event of a device that was created, changed or deleted.
    pub(super) fn is_change(&self) -> bool {
        use DeviceEventName::{Create, Delete, Update};
        [Create, Update, Delete].iter().any(|change| change.as_str() == self.kind)
    }

    /// As much of it as is shown, without characters that nobody sees or that change the direction of text.
    pub(super) fn shortened(mut self) -> Self {
        if let Some((end, _)) = self.text.char_indices().nth(TEXT_CHARS_MAX) {
            self.text.truncate(end);
            self.text.push('…');
        }
        self.text = visible(&spaced(&self.text)).into_owned();
        self
    }
}

/// The time that a message has.
fn time(message: &Message) -> Option<Timestamp> {
    match message {
        Message::Uplink(uplink) => uplink.metadata.time.parse().ok(),
        Message::Error(error) => error.time,
        Message::Activation(activation) => activation.metadata.time.parse().ok(),
        Message::Downlink(_, event) => event.time,
        Message::Device(_, event) => event.as_ref().map(|event| event.update_at),
        Message::Silent(silent) => Some(silent.time),
        Message::Field { .. } | Message::Unknown(_) => None,
    }
}

/// Returns true for an uplink without a counter and without anything about its reception. Messages of The Things Network
/// v2 have no mark of their own for what is simulated.
fn is_simulated(uplink: &Uplink) -> bool {
    let Metadata { latitude, longitude, altitude, functions_version, .. } = uplink.metadata;
    let time = uplink.metadata.time.clone();
    // The handler adds these to every uplink.
    let added = Metadata { time, latitude, longitude, altitude, functions_version, ..Metadata::default() };
    uplink.counter == 0 && uplink.metadata == added
}

fn hex(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    let shown = HexBytes(bytes.iter().copied().take(PAYLOAD_BYTES_MAX).collect()).to_string();
    if bytes.len() > PAYLOAD_BYTES_MAX { format!("{shown}…") } else { shown }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use client::data::Received;

    use super::*;

    /// The entry of a message that arrives at noon.
    fn entry(levels: &str, payload: &str) -> Entry {
        let received = Received::new("d1".parse().unwrap(), levels, payload.as_bytes());
        Entry::new(&received.dev_id, &received.message, "2026-11-30T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_message_has_its_own_time_or_that_of_its_arrival() {
        let (own, arrival) = ("2026-11-30T11:59:59Z", "2026-11-30T12:00:00Z");
        for (levels, payload, expected) in [
            ("events/activations", r#"{"app_eui":"","dev_eui":"","dev_addr":"","metadata":{"time":"TIME"}}"#, own),
            ("events/down/sent", r#"{"message":{"port":2},"config":{},"time":"TIME"}"#, own),
            ("events/up/errors", r#"{"error":"no","time":"TIME"}"#, own),
            ("events/update", r#"{"update_at":"TIME"}"#, own),
            ("events/down/scheduled", r#"{"message":{"port":2}}"#, arrival),
            ("events/up/errors", r#"{"error":"no"}"#, arrival),
            ("events/delete", "null", arrival),
            ("events/new", "{}", arrival),
            ("up", r#"{"app_id":"a1","dev_id":"d1","port":1,"counter":0,"payload_raw":"AQ==","metadata":{}}"#, arrival),
        ] {
            assert_eq!(entry(levels, &payload.replace("TIME", own)).time, expected, "{levels} {payload}");
        }
    }

    #[test]
    fn what_no_device_has_sent_is_marked() {
        let uplink = |counter: u32, metadata: &str| {
            let ids = r#""app_id":"a1","dev_id":"d1","port":1,"payload_raw":"AQ==""#;
            entry("up", &format!(r#"{{{ids},"counter":{counter},"metadata":{metadata}}}"#)).simulated
        };
        let time = r#""time":"2026-11-30T12:00:00Z""#;
        assert!(uplink(0, &format!(r#"{{{time},"latitude":52.5,"longitude":13.4,"functions_version":2}}"#)));
        assert!(!uplink(1, &format!("{{{time}}}")));
        assert!(!uplink(0, &format!(r#"{{{time},"data_rate":"SF7BW125"}}"#)));
        let gateways =
            r#""gateways":[{"gtw_id":"roof","timestamp":1,"time":"","channel":0,"rssi":-60,"snr":9.5,"rf_chain":0}]"#;
        assert!(!uplink(0, &format!("{{{time},{gateways}}}")));
        assert!(!entry("events/activations", r#"{"app_eui":"","dev_eui":"","dev_addr":"","metadata":{}}"#).simulated);
    }

    #[test]
    fn what_failed_is_told_from_what_did_not() {
        for (levels, payload, failed) in [
            ("activations", r#"{"app_eui":"","dev_eui":"","dev_addr":"","metadata":{}}"#, false),
            ("activations/errors", r#"{"error":"no","app_eui":"","dev_eui":"","dev_addr":"","metadata":{}}"#, true),
            ("down/scheduled", "{}", false),
            ("down/errors", r#"{"error":"no"}"#, true),
            ("up/errors", r#"{"error":"no"}"#, true),
        ] {
            let entry = entry(&format!("events/{levels}"), payload);
            assert_eq!((entry.kind.as_str(), entry.failed), (levels, failed), "{payload}");
        }
    }

    #[test]
    fn a_device_that_was_changed_is_told_from_what_it_sent() {
        for (levels, payload, is_change) in [
            ("events/create", "null", true),
            ("events/update", r#"{"update_at":"2026-11-30T12:00:00Z"}"#, true),
            ("events/delete", "null", true),
            ("events/up/errors", r#"{"error":"no"}"#, false),
            ("up", r#"{"app_id":"a1","dev_id":"d1","port":1,"counter":0,"payload_raw":"AQ==","metadata":{}}"#, false),
        ] {
            assert_eq!(entry(levels, payload).is_change(), is_change, "{levels}");
        }
    }
}
