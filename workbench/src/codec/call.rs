//! Calls the function of an example in the way that its dialect wants.

use runtime::{Call, Dialect, EntryPoint, Function, Functions, Slot};
use serde_json::{Map, Value};

use super::{Example, Input};
use crate::text::surrogates::to_json;

/// The seed of `Math.random` in every example.
const SEED: u64 = 1;

/// The call that `example` describes.
pub(crate) fn call(functions: &Functions, example: &Example) -> Call {
    let (payload, extra) = arguments(functions, example);
    Call {
        entry_point: EntryPoint::SingleFunction,
        port: example.port,
        time_ms: example.time_ms,
        seed: SEED,
        payload,
        extra: to_json(&Value::Object(extra)),
        single_function: Some(example.function),
    }
}

/// The payload, and what the function gets besides it: the members of the input object other than `data`, or for
/// ChirpStack 3 the variables.
fn arguments(functions: &Functions, example: &Example) -> (Vec<u8>, Map<String, Value>) {
    let mut extra = example.extra.clone();
    let is_ts013 = dialect(functions, example.function) == Some(Dialect::Ts013);
    let payload = match &example.input {
        Input::Bytes(bytes) => bytes.clone(),
        Input::Json(Value::Object(input)) if is_ts013 || example.wrapped => {
            let mut input = input.clone();
            let fields = input.shift_remove("data").unwrap_or_default();
            extra.extend(input);
            to_json(&fields).into_bytes()
        }
        Input::Json(value) => to_json(value).into_bytes(),
    };
    (payload, extra)
}

/// The dialect in which a function is called; none if the source does not define it.
pub(crate) fn dialect(functions: &Functions, function: Function) -> Option<Dialect> {
    let slot = match function {
        Function::Decoder => Slot::Decoder,
        Function::Converter => Slot::Converter,
        Function::Validator => Slot::Validator,
        Function::Encoder => Slot::Encoder,
        Function::DecodeDownlink | Function::NormalizeUplink => return Some(Dialect::Ts013),
    };
    functions.dialect(slot)
}
