//! Formatters in JavaScript, called as The Things Stack calls them: `decodeUplink` with `normalizeUplink`, or else
//! `Decoder`; `encodeDownlink`, or else `Encoder`.

use std::{sync::Arc, time::Duration};

use runtime::{Call, CallOutcome, EntryPoint, Failure, Pool, Slot, Sources, Value};
use serde_json::value::RawValue;

use super::decoded::Decoded;
use crate::{
    outcome::{self, CodecError, Encoded, Input},
    script::Script,
};

/// What a formatter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Uplink,
    Downlink,
}

/// How warnings of the normalizer begin.
const NORMALIZER: &str = "`normalizeUplink`";

/// The script of a formatter, of which only the functions of its role count.
pub(super) fn script(text: &str, role: Role, id: &str, (pool, wait_max): (Arc<Pool>, Duration)) -> Script {
    Script::new(sources(text, role), id, pool, wait_max)
}

pub(super) fn sources(text: &str, role: Role) -> Sources {
    let text = text.to_owned();
    match role {
        Role::Uplink => Sources { decoder: text, ..Sources::default() },
        Role::Downlink => Sources { encoder: text, ..Sources::default() },
    }
}

/// Calls `decodeUplink({bytes, fPort, recvTime})` and `normalizeUplink({data})`, or `Decoder(bytes, port)`.
pub(super) async fn decode(script: &Script, payload: &[u8], input: &Input<'_>) -> Result<Decoded, CodecError> {
    const NAME: &str = "decodeUplink";
    let (value, outcome) = call(script, NAME, call_of(EntryPoint::Uplink, payload.to_vec(), input)).await?;
    let Value::Fields { json, normalized, .. } = value else { return Err(malformed(NAME)) };
    let object = Some(json).filter(|json| json.get() != "null");
    let (normalized_warnings, warnings) =
        outcome.warnings.into_iter().partition(|warning| warning.starts_with(NORMALIZER));
    let (fuel, elapsed) = (outcome.fuel, outcome.elapsed);
    let uplink = outcome::Decoded { object, warnings, fuel, elapsed };
    Ok(Decoded { uplink, normalized: measurements(normalized), normalized_warnings })
}

/// Calls `encodeDownlink({data, fPort})`, or `Encoder(data, port)`.
pub(super) async fn encode(script: &Script, object: &str, input: &Input<'_>) -> Result<Encoded, CodecError> {
    const NAME: &str = "encodeDownlink";
    let payload = object.as_bytes().to_vec();
    match call(script, NAME, call_of(EntryPoint::EncodeDownlink, payload, input)).await? {
        (Value::Bytes { bytes, port }, _) => Ok(Encoded { bytes, port }),
        _ => Err(malformed(NAME)),
    }
}

fn call_of(entry_point: EntryPoint, payload: Vec<u8>, input: &Input<'_>) -> Call {
    let Input { port, time_ms, seed, .. } = *input;
    Call { entry_point, port, time_ms, seed, payload, extra: String::new(), single_function: None }
}

async fn call(script: &Script, name: &'static str, call: Call) -> Result<(Value, CallOutcome), CodecError> {
    let mut outcome = script.call(name, call).await?;
    let nothing = Err(Failure::malformed_reply(Slot::Decoder));
    match std::mem::replace(&mut outcome.result, nothing) {
        Ok(value) => Ok((value, outcome)),
        Err(failure) => Err(CodecError::failed(name, failure)),
    }
}

fn malformed(name: &'static str) -> CodecError {
    CodecError::failed(name, Failure::malformed_reply(Slot::Decoder))
}

/// The measurements that `normalizeUplink` returned: one, or an array of them.
fn measurements(normalized: Option<Box<RawValue>>) -> Vec<Box<RawValue>> {
    let Some(normalized) = normalized else { return Vec::new() };
    serde_json::from_str(normalized.get()).unwrap_or_else(|_| vec![normalized])
}
