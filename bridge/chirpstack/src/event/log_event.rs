//! The `log` event, in which ChirpStack reports failures of codecs.

use std::collections::BTreeMap;

use bridge::codec::outcome::CodecError;
use serde::Serialize;
use serde_json::value::RawValue;
use types::Timestamp;

/// A `log` event, in ChirpStack's own form.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogEvent<'a> {
    pub(crate) time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) device_info: Option<&'a RawValue>,
    pub(crate) level: Level,
    pub(crate) code: Code,
    pub(crate) description: String,
    pub(crate) context: BTreeMap<&'static str, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Level {
    Warning,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Code {
    UplinkCodec,
    DownlinkCodec,
}

impl<'a> LogEvent<'a> {
    /// The failure of a codec: its function, the line and column, and the reason stand in the context too.
    pub(crate) fn failure(error: &CodecError, code: Code, time: Timestamp, device_info: Option<&'a RawValue>) -> Self {
        let context = error.context();
        Self { time, device_info, level: Level::Error, code, description: error.to_string(), context }
    }

    /// The warnings that a codec returned.
    pub(crate) fn warnings(warnings: &[String], time: Timestamp, device_info: Option<&'a RawValue>) -> Self {
        Self {
            time,
            device_info,
            level: Level::Warning,
            code: Code::UplinkCodec,
            description: format!("decodeUplink returned warnings: {}", warnings.join(", ")),
            context: BTreeMap::new(),
        }
    }

    /// Adds the id of the event that it is about.
    pub(crate) fn about(mut self, deduplication_id: Option<&str>) -> Self {
        if let Some(id) = deduplication_id {
            self.context.insert("deduplication_id", id.to_owned());
        }
        self
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}
