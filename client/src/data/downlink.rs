//! Messages to devices, in the exact shape of The Things Network v2.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A message to a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Downlink {
    /// The LoRaWAN port.
    pub port: u8,
    /// Whether the device has to acknowledge it.
    pub confirmed: bool,
    /// Where in the queue of the device it goes; without it, in place of all that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// What it says.
    #[serde(flatten)]
    pub content: Content,
}

/// Where in the queue of a device a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Before all that wait.
    First,
    /// Behind all that wait.
    Last,
    /// In place of all that wait.
    Replace,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Content {
    /// These bytes.
    #[serde(rename = "payload_raw", serialize_with = "base64")]
    Raw(Vec<u8>),
    /// Fields that the application's encoder turns into bytes.
    #[serde(rename = "payload_fields")]
    Fields(Map<String, Value>),
}

fn base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn a_downlink_is_written_as_v2_reads_it() {
        let raw = Downlink { port: 2, confirmed: true, schedule: None, content: Content::Raw(vec![1, 2]) };
        assert_eq!(to_value(&raw).unwrap(), json!({"port": 2, "confirmed": true, "payload_raw": "AQI="}));
        let Value::Object(fields) = json!({"led": 1}) else { panic!("it is an object") };
        let queued = Downlink { schedule: Some(Schedule::Last), content: Content::Fields(fields), ..raw };
        let expected = json!({"port": 2, "confirmed": true, "schedule": "last", "payload_fields": {"led": 1}});
        assert_eq!(to_value(&queued).unwrap(), expected);
    }
}
