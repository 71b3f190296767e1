//! The input objects of TS013, as most layouts write them.

use runtime::Function;
use serde_json::{Map, Value};
use types::{HexBytes, Timestamp};

use crate::codec::{DEFAULT_TIME_MS, Example, Expected, Input, takes_bytes};

/// Names of the payload, the port and the time in input objects.
const BYTES: &str = "bytes";
const PORTS: [&str; 3] = ["fPort", "fport", "port"];
const TIMES: [&str; 2] = ["recvTime", "time"];

/// An example, with the member that states what is expected if that can be replaced, and whether its bytes are
/// hexadecimal text.
pub(in super::super) struct Stated {
    pub(in super::super) example: Example,
    pub(in super::super) member: Option<(&'static str, bool)>,
}

/// An example of `function` with the input object `input`.
pub(in super::super) fn example(function: Function, input: &Value, expected: Option<Value>) -> Result<Example, String> {
    let Value::Object(input) = input else { return Err("`input` is missing, or no object".to_owned()) };
    let port = port(input)?;
    let time = TIMES.iter().find_map(|name| input.get(*name)?.as_str()?.parse::<Timestamp>().ok());
    let time_ms = time.map_or(DEFAULT_TIME_MS, Timestamp::as_millis);
    let expected = expected.map_or(Expected::Unknown, Expected::Value);
    let (input, extra) = match takes_bytes(function) {
        true => {
            let is_extra = |name: &String| name != BYTES && !PORTS.contains(&name.as_str());
            let extra = input.iter().filter(|(name, _)| is_extra(name));
            let payload = input.get(BYTES).ok_or("`bytes` are missing in `input`")?;
            (Input::Bytes(bytes(payload)?), extra.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        false => (Input::Json(Value::Object(input.clone())), Map::new()),
    };
    let wrapped = true;
    Ok(Example { port, extra, time_ms, expected, wrapped, ..Example::new(function, input) })
}

fn port(input: &Map<String, Value>) -> Result<u8, String> {
    let Some((name, value)) = PORTS.iter().find_map(|name| Some((name, input.get(*name)?))) else { return Ok(0) };
    if value.is_null() {
        return Ok(0);
    }
    let port = value.as_u64().and_then(|port| u8::try_from(port).ok());
    port.ok_or_else(|| format!("`{name}` must be a number from 0 to 255"))
}

/// Bytes as a list of numbers, or as hexadecimal text.
pub(in super::super) fn bytes(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::String(text) => {
            let HexBytes(bytes) = text.parse().map_err(|error| format!("`bytes` not valid: {error}"))?;
            Ok(bytes)
        }
        Value::Array(values) => values.iter().map(byte).collect(),
        _ => Err("`bytes` must be a list of numbers or hexadecimal text".to_owned()),
    }
}

fn byte(value: &Value) -> Result<u8, String> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..256.0).contains(number));
    number.map(|number| number as u8).ok_or_else(|| format!("`bytes` not valid: {value} is no byte"))
}

/// Replaces `bytes` that are hexadecimal text by the numbers that a function returns; tells whether it did.
pub(in super::super) fn read_hex_bytes(expected: &mut Value) -> bool {
    let Some(stated) = expected.get_mut(BYTES) else { return false };
    match stated.as_str().map(str::parse) {
        Some(Ok(HexBytes(bytes))) => {
            *stated = bytes.into();
            true
        }
        _ => false,
    }
}
