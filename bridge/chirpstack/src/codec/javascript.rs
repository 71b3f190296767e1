//! Codecs in JavaScript, called as ChirpStack 4 calls them.

use std::{sync::Arc, time::Duration};

use bridge::codec::{
    outcome::{CodecError, Decoded, Encoded, Input, Run},
    script::Script,
};
use runtime::{Call, CallOutcome, EntryPoint, Failure, Function, Pool, Slot, Sources, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

const DECODER: &str = "decodeUplink";
const ENCODER: &str = "encodeDownlink";
/// ChirpStack writes null where a field is a `BigInt`, which otherwise would cost the whole object. It comes after the
/// script, whose lines stay where they are.
const BIG_INTEGERS: &str = ";BigInt.prototype.toJSON = function () { return null; };";

/// The result of `decodeUplink` or `encodeDownlink`. Members of other types count as missing, as in ChirpStack.
#[derive(Deserialize)]
struct Returned<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    bytes: Option<&'a RawValue>,
    #[serde(borrow, rename = "fPort")]
    port: Option<&'a RawValue>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
    #[serde(borrow)]
    warnings: Option<&'a RawValue>,
}

/// The script of the device profile `profile_id`, whose messages wait for a sandbox for `wait_max` at most.
pub(crate) fn script(text: &str, profile_id: &str, pool: Arc<Pool>, wait_max: Duration) -> Script {
    let text = format!("{text}\n{BIG_INTEGERS}");
    let sources = Sources { dialect: Some(runtime::Dialect::Ts013), ..Sources::single_file(text) };
    Script::new(sources, profile_id, pool, wait_max)
}

/// Calls `decodeUplink({bytes, fPort, recvTime, variables})`.
pub(crate) async fn decode(
    script: &Script,
    payload: &[u8],
    input: &Input<'_>,
    ran: &mut Run,
) -> Result<Decoded, CodecError> {
    let (json, own) = call(script, (Function::Decoder, payload.to_vec()), input, ran).await?;
    let returned = Returned::read(&json, DECODER)?;
    let data = returned.data.filter(|data| data.get().starts_with('{'));
    let object = data.ok_or(CodecError::Missing { function: DECODER, member: "data" })?;
    let mut warnings = returned.warnings();
    warnings.extend(own);
    Ok(Decoded { object: Some(object.to_owned()), warnings })
}

/// Calls `encodeDownlink({data, fPort, variables})`.
pub(crate) async fn encode(script: &Script, object: &str, input: &Input<'_>) -> Result<Encoded, CodecError> {
    let payload = object.as_bytes().to_vec();
    let (json, _) = call(script, (Function::Encoder, payload), input, &mut Run::default()).await?;
    let returned = Returned::read(&json, ENCODER)?;
    let bytes: Option<Vec<f64>> = parse(returned.bytes);
    let bytes = bytes.ok_or(CodecError::Missing { function: ENCODER, member: "bytes" })?;
    let port: Option<f64> = parse(returned.port);
    // As ChirpStack does it: numbers are cut off and saturate.
    Ok(Encoded { bytes: bytes.into_iter().map(|byte| byte as u8).collect(), port: port.map(|port| port as u8) })
}

/// Runs one function; returns its result as JSON, and the sandbox's own warnings.
async fn call(
    script: &Script,
    (function, payload): (Function, Vec<u8>),
    input: &Input<'_>,
    ran: &mut Run,
) -> Result<(Box<RawValue>, Vec<String>), CodecError> {
    let name = if function == Function::Encoder { ENCODER } else { DECODER };
    let call = Call {
        entry_point: EntryPoint::SingleFunction,
        port: input.port,
        time_ms: input.time_ms,
        seed: input.seed,
        payload,
        extra: format!(r#"{{"variables":{}}}"#, input.variables),
        single_function: Some(function),
    };
    let CallOutcome { result, warnings, .. } = script.call(name, call, ran).await?;
    match result {
        Ok(Value::Returned { json: Some(json) }) => Ok((json, warnings)),
        Ok(Value::Returned { json: None }) => Err(CodecError::Missing { function: name, member: "data" }),
        Ok(_) => Err(CodecError::failed(name, Failure::malformed_reply(Slot::Decoder))),
        Err(failure) => Err(CodecError::failed(name, failure)),
    }
}

impl<'a> Returned<'a> {
    /// Reads a returned object; `errors` make it a failure.
    fn read(json: &'a RawValue, function: &'static str) -> Result<Self, CodecError> {
        let member = if function == ENCODER { "bytes" } else { "data" };
        let returned: Self = serde_json::from_str(json.get()).map_err(|_| CodecError::Missing { function, member })?;
        let errors: Vec<String> = parse(returned.errors).unwrap_or_default();
        if errors.is_empty() { Ok(returned) } else { Err(CodecError::Errors { function, errors }) }
    }

    fn warnings(&self) -> Vec<String> {
        parse(self.warnings).unwrap_or_default()
    }
}

fn parse<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Option<T> {
    value.and_then(|value| serde_json::from_str(value.get()).ok())
}
