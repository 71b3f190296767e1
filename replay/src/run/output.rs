//! A line of JSON for each uplink, with the old object and the new one.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;
use types::Timestamp;

use crate::{
    Stored,
    check::{Checked, Verdict},
};

#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    application: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    device: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Timestamp>,
    port: u8,
    payload: String,
    verdict: &'static str,
    old: Option<&'a RawValue>,
    new: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

/// Adds the line of an uplink.
pub(super) fn write(out: &mut Vec<u8>, uplink: &Stored, checked: &Checked) {
    let failure = match &checked.verdict {
        Verdict::NewlyFailing(failure) | Verdict::StillFailing(failure) => Some(failure.to_string()),
        _ => None,
    };
    let line = Line {
        id: &uplink.id,
        application: &uplink.application.id,
        device: &uplink.device.id,
        time: uplink.time,
        port: uplink.port,
        payload: STANDARD.encode(&uplink.payload),
        verdict: checked.verdict.name(),
        old: uplink.object.as_deref(),
        new: checked.object.as_deref(),
        failure,
    };
    // Neither writing to memory nor these types can fail.
    _ = serde_json::to_writer(&mut *out, &line);
    out.push(b'\n');
}
