//! Bytes in, fields out: decoder, converter, validator.

use crate::adopt::adopt;
use crate::call::{Call, Outcome};
use crate::dialect::{Function, describe};
use crate::failure::Failure;
use crate::guest::Functions;
use crate::js::{Primitive, Value};
use crate::wire::{self, Dialect, Kind, Slot};
use crate::{globals, normalize, ts013};

/// Runs the functions that there are, each on what the one before it returned.
pub(crate) fn run(call: &mut Call<'_>, functions: &Functions) -> Result<Outcome, Failure> {
    let [decoder, converter, validator, _, _, normalizer] = functions;
    let decoded = match decoder {
        Some(function) => decode(call, function)?,
        None => None,
    };
    // Taken now, because what comes next may change the object.
    let draft = match (normalizer, &decoded) {
        (Some(function), Some(decoded)) => normalize::draft(call, function, decoded),
        _ => None,
    };
    let fields = match converter {
        Some(function) => Some(convert(call, function, decoded)?),
        None => decoded,
    };
    let valid = match validator {
        Some(function) => validate(call, function, fields.as_ref())?,
        None => true,
    };
    let json = match (fields, converter.as_ref().or(decoder.as_ref())) {
        (Some(fields), Some(function)) => call.fields(function, fields)?,
        _ => b"null".to_vec(),
    };
    let normalized = match (normalizer, draft) {
        (Some(function), Some(draft)) if valid => normalize::run(call, function, draft),
        _ => None,
    };
    Ok(Outcome::Fields { valid, json, normalized })
}

/// Runs `decodeDownlink` of TS013.
pub(crate) fn decode_downlink(call: &mut Call<'_>, functions: &Functions) -> Result<Outcome, Failure> {
    let function = functions[wire::Function::DecodeDownlink as usize]
        .as_ref()
        .ok_or_else(|| Failure::new(Slot::Encoder, Kind::Syntax, "defines no function named `decodeDownlink`"))?;
    let returned = ts013::call_with_bytes(call, function)?;
    let json = match data(call, function, &returned)? {
        Some(fields) => call.fields(function, fields)?,
        None => b"null".to_vec(),
    };
    Ok(Outcome::Fields { valid: true, json, normalized: None })
}

/// Calls a decoder, and gives whatever it returns.
pub(crate) fn ask(call: &Call<'_>, function: &Function) -> Result<Value, Failure> {
    match function.dialect {
        Dialect::V2 => ask_v2(call, function),
        Dialect::Ts013 => ts013::call_with_bytes(call, function),
        Dialect::ChirpStack3 => {
            let variables = call.variables(function)?;
            function.call(call.guest, [&call.port(function.realm()), &call.byte_array(function)?, &variables])
        }
    }
}

/// Calls a converter or validator with what the one before it returned.
pub(crate) fn pass_on(call: &Call<'_>, function: &Function, fields: &Value) -> Result<Value, Failure> {
    let realm = function.realm();
    globals::set(call, function, fields)?;
    function.call(call.guest, [fields, &call.port(realm)])
}

fn ask_v2(call: &Call<'_>, function: &Function) -> Result<Value, Failure> {
    // The global and the argument are two arrays, so that changing one leaves the other.
    let bytes = call.byte_array(function)?;
    if function.globals.subject(function) {
        globals::set(call, function, &call.byte_array(function)?)?;
    } else {
        globals::set(call, function, &bytes)?;
    }
    function.call(call.guest, [&bytes, &call.port(function.realm())])
}

fn decode(call: &mut Call<'_>, function: &Function) -> Result<Option<Value>, Failure> {
    let decoded = ask(call, function)?;
    if function.dialect == Dialect::Ts013 {
        return data(call, function, &decoded);
    }
    function.require_object(&decoded, "must return an object")?;
    Ok(Some(decoded))
}

fn data(call: &mut Call<'_>, function: &Function, result: &Value) -> Result<Option<Value>, Failure> {
    let data = ts013::data(call, function, result)?;
    if let Some(data) = &data {
        function.require_object(data, "must return an object as `data`")?;
    }
    Ok(data)
}

fn convert(call: &Call<'_>, function: &Function, decoded: Option<Value>) -> Result<Value, Failure> {
    let fields = fields_or_none(call, function, decoded.as_ref())?;
    let converted = pass_on(call, function, &fields)?;
    function.require_object(&converted, "must return an object")?;
    Ok(converted)
}

fn validate(call: &Call<'_>, function: &Function, converted: Option<&Value>) -> Result<bool, Failure> {
    let fields = fields_or_none(call, function, converted)?;
    let verdict = pass_on(call, function, &fields)?;
    match verdict.primitive() {
        Primitive::Bool(valid) => Ok(valid),
        _ => Err(Failure::output(function.slot, format!("must return a boolean, got {}", describe(&verdict)))),
    }
}

/// What the function before returned, or an empty object.
fn fields_or_none(call: &Call<'_>, function: &Function, fields: Option<&Value>) -> Result<Value, Failure> {
    let realm = function.realm();
    match fields {
        Some(fields) => {
            adopt(call.guest, fields, realm);
            Ok(fields.share(realm))
        }
        None => call.made(function, realm.object()),
    }
}
