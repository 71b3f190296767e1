//! Checks that the result of `decodeDownlink` survives `encodeDownlink` and decoding again, as TS013 wants.

use runtime::{Call, Function};
use serde_json::Value;

use super::{
    Fault, FaultKind, Returned,
    caller::{Caller, json},
    without_indices,
};
use crate::{
    codec::compare::{differences, truncate},
    text::surrogates::mark,
};

/// Longest payload that a device can get, in bytes.
const PAYLOAD_BYTES_MAX: usize = 242;

/// Encodes the fields in `decoded`, which `call` returned, and returns the faults. None if the encoder refuses them
/// with `errors`, or with an empty payload, as many do that do not know a command.
pub(super) fn faults(caller: &mut Caller<'_>, call: &Call, decoded: &str) -> Vec<Fault> {
    let Some(fields) = Returned::read(decoded).and_then(|returned| returned.fields()) else { return Vec::new() };
    let encode =
        Call { payload: fields.as_bytes().to_vec(), port: 0, single_function: Some(Function::Encoder), ..call.clone() };
    let outcome = caller.call(&encode);
    let mut found = caller.judge(Function::Encoder, &outcome);
    found.iter_mut().for_each(|fault| fault.input = Some(format!("{{\"data\":{fields}}}")));
    let payload = json(&outcome).and_then(Returned::read).and_then(|returned| returned.payload());
    let Some((bytes, port)) =
        payload.filter(|(bytes, _)| found.is_empty() && (1..=PAYLOAD_BYTES_MAX).contains(&bytes.len()))
    else {
        return found;
    };
    let again = caller.call(&Call { payload: bytes.clone(), port: port.unwrap_or(call.port), ..call.clone() });
    let fields_again = json(&again).and_then(Returned::read).and_then(|returned| returned.fields()).unwrap_or("null");
    compare(fields, &bytes, fields_again).into_iter().collect()
}

fn compare(fields: &str, bytes: &[u8], again: &str) -> Option<Fault> {
    let value = |json: &str| serde_json::from_str::<Value>(&mark(json)).ok();
    let differences = differences(&value(fields)?, &value(again)?, true);
    let first = differences.first()?;
    let nothing = || "nothing".to_owned();
    let (before, after) = (first.expected.clone().unwrap_or_else(nothing), first.got.clone().unwrap_or_else(nothing));
    let path = if first.path.is_empty() { "the result" } else { &first.path };
    let message = format!(
        "decoded {}, which is encoded as {}; decoding that gives {after} as {path}, and not {before}",
        truncate(fields),
        truncate(&hex::encode(bytes)),
    );
    let fault = Fault::new(Function::DecodeDownlink, FaultKind::RoundTrip, &without_indices(path), message);
    Some(Fault { summary: format!("{path} changes when it is encoded and decoded again"), ..fault })
}
