//! Runs decoder, converter and validator.

use super::transfer::transfer;
use super::{globals, normalize, ts013};
use crate::call::function::describe;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::guest::{Function, Functions};
use crate::js::{Primitive, Value};
use crate::wire::{self, Dialect, FailureKind, Slot};

/// Runs the functions that are defined, each on the result of the one before.
pub(crate) fn run(call: &mut Call<'_>, functions: &Functions) -> Result<Outcome, Failure> {
    let [decoder, converter, validator, _, _, normalizer] = functions;
    let decoded = match decoder {
        Some(function) => decode(call, function)?,
        None => None,
    };
    // Copied now, because the converter may change the object.
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
    let function = functions[wire::Function::DecodeDownlink as usize].as_ref().ok_or_else(|| {
        Failure::new(Slot::Encoder, FailureKind::Syntax, "defines no function named `decodeDownlink`")
    })?;
    let returned = ts013::call_with_bytes(call, function)?;
    let json = match data(call, function, &returned)? {
        Some(fields) => call.fields(function, fields)?,
        None => b"null".to_vec(),
    };
    Ok(Outcome::Fields { valid: true, json, normalized: None })
}

pub(crate) fn call_decoder(call: &Call<'_>, function: &Function) -> Result<Value, Failure> {
    match function.dialect {
        Dialect::V2 => call_v2_decoder(call, function),
        Dialect::Ts013 => ts013::call_with_bytes(call, function),
        Dialect::ChirpStack3 => {
            let variables = call.variables(function)?;
            function.call(call.guest, [&call.port(function.realm()), &call.byte_array(function)?, &variables])
        }
    }
}

/// Calls a converter or validator with the result of the previous function.
pub(crate) fn call_with_fields(call: &Call<'_>, function: &Function, fields: &Value) -> Result<Value, Failure> {
    let realm = function.realm();
    globals::set(call, function, fields)?;
    function.call(call.guest, [fields, &call.port(realm)])
}

fn call_v2_decoder(call: &Call<'_>, function: &Function) -> Result<Value, Failure> {
    // The global and the argument are separate arrays, so that changing one does not change the other.
    let bytes = call.byte_array(function)?;
    if function.reads_global() {
        globals::set(call, function, &call.byte_array(function)?)?;
    } else {
        globals::set(call, function, &bytes)?;
    }
    function.call(call.guest, [&bytes, &call.port(function.realm())])
}

fn decode(call: &mut Call<'_>, function: &Function) -> Result<Option<Value>, Failure> {
    let decoded = call_decoder(call, function)?;
    if function.dialect == Dialect::Ts013 {
        return data(call, function, &decoded);
    }
    function.require_object(&decoded, "must return an object")?;
    Ok(Some(decoded))
}

fn data(call: &mut Call<'_>, function: &Function, result: &Value) -> Result<Option<Value>, Failure> {
    let data = ts013::data(call, function, result)?;
    match &data {
        Some(data) => function.require_object(data, "must return an object as `data`")?,
        None => ts013::note_stray_fields(call, function, result)?,
    }
    Ok(data)
}

fn convert(call: &Call<'_>, function: &Function, decoded: Option<Value>) -> Result<Value, Failure> {
    let fields = fields_or_none(call, function, decoded.as_ref())?;
    let converted = call_with_fields(call, function, &fields)?;
    function.require_object(&converted, "must return an object")?;
    Ok(converted)
}

fn validate(call: &Call<'_>, function: &Function, converted: Option<&Value>) -> Result<bool, Failure> {
    let fields = fields_or_none(call, function, converted)?;
    let verdict = call_with_fields(call, function, &fields)?;
    match verdict.primitive() {
        Primitive::Bool(valid) => Ok(valid),
        _ => Err(Failure::output(function.slot, format!("must return a boolean, got {}", describe(&verdict)))),
    }
}

/// The result of the previous function, or an empty object.
fn fields_or_none(call: &Call<'_>, function: &Function, fields: Option<&Value>) -> Result<Value, Failure> {
    let realm = function.realm();
    match fields {
        Some(fields) => {
            transfer(call.guest, fields, realm);
            Ok(fields.share(realm))
        }
        None => call.made(function, realm.object()),
    }
}
