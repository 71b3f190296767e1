//! A line of JSON or a row for each uplink, with the old object and the new one.

mod parquet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;
use types::Timestamp;

pub use self::parquet::{OutputRow, ParquetOutput};
use crate::{RecordedUplink, check::Checked};

/// Format of uplinks and their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// A JSON object on each line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
}

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
    failure: Option<&'a str>,
    fuel: u64,
}

/// Adds the line of an uplink.
pub(super) fn write_line(out: &mut Vec<u8>, uplink: &RecordedUplink, checked: &Checked) {
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
        failure: checked.verdict.failure(),
        fuel: checked.fuel,
    };
    // Neither writing to memory nor these types can fail.
    _ = serde_json::to_writer(&mut *out, &line);
    out.push(b'\n');
}

pub(super) fn row(uplink: &RecordedUplink, checked: &Checked) -> OutputRow {
    let json = |object: Option<&RawValue>| object.map(RawValue::get).unwrap_or_default().to_owned();
    OutputRow {
        id: uplink.id.clone(),
        application: uplink.application.id.clone(),
        device: uplink.device.id.clone(),
        time: uplink.time,
        port: uplink.port,
        payload: uplink.payload.clone(),
        verdict: checked.verdict.name(),
        old: json(uplink.object.as_deref()),
        new: json(checked.object.as_deref()),
        failure: checked.verdict.failure().unwrap_or_default().to_owned(),
        fuel: checked.fuel,
    }
}
