//! The messages of an application, by their topics.

use std::str::FromStr;

use serde::de::DeserializeOwned;
use types::{Activation, DeviceEvent, DownlinkEvent, ErrorEvent, SilentEvent, Uplink};

/// A message about a device.
#[derive(Clone, Debug)]
pub enum Message {
    /// A message that the device sent.
    Uplink(Box<Uplink>),
    /// One field of an uplink, as JSON.
    Field {
        /// Such as `temperature` or `gps/latitude`.
        path: String,
        /// Its value.
        value: Box<serde_json::value::RawValue>,
    },
    /// A join; with an error, one that failed.
    Activation(Box<Activation>),
    /// A downlink was queued, sent or acknowledged, or failed.
    Downlink(DeviceEventName, Box<DownlinkEvent>),
    /// The device was created, updated or deleted.
    Device(DeviceEventName, Option<DeviceEvent>),
    /// The device has sent nothing for a time.
    Silent(Box<SilentEvent>),
    /// An uplink could not be handled.
    Error(ErrorEvent),
    /// A message that this client does not know, as received.
    Unknown(Vec<u8>),
}

macro_rules! names {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// Names of the events of a device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DeviceEventName {
            $($(#[doc = $doc])+ $name,)+
        }

        impl DeviceEventName {
            const ALL: &[Self] = &[$(Self::$name,)+];

            /// The last levels of its topic.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

names! {
    /// It joined.
    Activations = "activations",
    /// It could not join.
    ActivationErrors = "activations/errors",
    /// It was created.
    Create = "create",
    /// It was updated.
    Update = "update",
    /// It was deleted.
    Delete = "delete",
    /// A downlink is in its queue. The alias is `downlink/scheduled`.
    DownScheduled = "down/scheduled",
    /// A downlink was sent. The alias is `downlink/sent`.
    DownSent = "down/sent",
    /// It acknowledged a downlink.
    DownAcks = "down/acks",
    /// A downlink failed.
    DownErrors = "down/errors",
    /// An uplink failed.
    UpErrors = "up/errors",
    /// It has sent nothing for a time.
    Silent = "silent",
}

impl FromStr for DeviceEventName {
    /// A message that says which name is unknown.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = match text {
            "downlink/scheduled" => "down/scheduled",
            "downlink/sent" => "down/sent",
            name => name,
        };
        Self::ALL.iter().find(|event| event.as_str() == name).copied().ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|event| event.as_str()).collect();
            format!("`{text}` is not an event of a device: must be one of {}", known.join(", "))
        })
    }
}

impl Message {
    /// Parses a message by the levels of its topic below the device, such as `up` or `events/down/sent`.
    pub(super) fn parse(levels: &str, payload: &[u8]) -> Self {
        let parsed = match levels.split_once('/') {
            None if levels == "up" => json(payload).map(Self::Uplink),
            Some(("up", path)) => json(payload).map(|value| Self::Field { path: path.to_owned(), value }),
            Some(("events", name)) => name.parse().ok().and_then(|name| Self::event(name, payload)),
            _ => None,
        };
        parsed.unwrap_or_else(|| Self::Unknown(payload.to_owned()))
    }

    fn event(name: DeviceEventName, payload: &[u8]) -> Option<Self> {
        use DeviceEventName::*;
        match name {
            Activations | ActivationErrors => json(payload).map(Self::Activation),
            Create | Update | Delete => json(payload).map(|change| Self::Device(name, change)),
            DownScheduled | DownSent | DownAcks | DownErrors => json(payload).map(|event| Self::Downlink(name, event)),
            UpErrors => json(payload).map(Self::Error),
            Silent => json(payload).map(Self::Silent),
        }
    }
}

fn json<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_type_of_its_topic() {
        let uplink =
            br#"{"app_id":"a1","dev_id":"d1","port":1,"counter":0,"payload_raw":"AQI=","metadata":{"time":""}}"#;
        assert!(matches!(Message::parse("up", uplink), Message::Uplink(uplink) if uplink.port == 1));
        let field = Message::parse("up/gps/latitude", b"52.5");
        assert!(matches!(field, Message::Field { path, value } if path == "gps/latitude" && value.get() == "52.5"));
        let joined = br#"{"app_eui":"","dev_eui":"","dev_addr":"26000001","metadata":{}}"#;
        assert!(matches!(Message::parse("events/activations", joined), Message::Activation(_)));
        let sent = br#"{"payload":"YA==","message":{"app_id":"a1","port":2},"gateway_id":"g1","config":{}}"#;
        let Message::Downlink(DeviceEventName::DownSent, sent) = Message::parse("events/down/sent", sent) else {
            panic!("it is a downlink")
        };
        assert_eq!(sent.message.unwrap().port, 2);
        let deleted = Message::parse("events/delete", b"null");
        assert!(matches!(deleted, Message::Device(DeviceEventName::Delete, None)));
        assert!(matches!(Message::parse("events/up/errors", br#"{"error":"no"}"#), Message::Error(_)));
        let silent = br#"{"app_id":"a1","dev_id":"d1","silent_after_s":3600,"time":"2026-11-30T12:00:00Z"}"#;
        let Message::Silent(silent) = Message::parse("events/silent", silent) else { panic!("it is silent") };
        assert_eq!((silent.silent_after_s.to_string().as_str(), silent.last_seen), ("1h", None));
        for (levels, payload) in [("up", &b"{"[..]), ("events/new", b"{}"), ("down", b"{}")] {
            assert!(matches!(Message::parse(levels, payload), Message::Unknown(bytes) if bytes == payload));
        }
    }
}
