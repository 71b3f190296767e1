//! Bytes in, fields out: decoder, converter, validator.

use crate::call::{Call, Outcome};
use crate::dialect::{Function, describe};
use crate::failure::Failure;
use crate::js::{Primitive, Value};
use crate::wire::{Dialect, Kind, Slot};

/// Runs the functions that there are, each on what the one before it returned.
pub(crate) fn run(call: &mut Call<'_>, functions: &[Option<Function>; 5]) -> Result<Outcome, Failure> {
    let [decoder, converter, validator, ..] = functions;
    let decoded = decoder.as_ref().map(|function| decode(call, function)).transpose()?;
    let converted = match converter {
        Some(function) => Some(convert(call, function, decoded)?),
        None => decoded,
    };
    let valid = match validator {
        Some(function) => validate(call, function, converted.as_ref())?,
        None => true,
    };
    let json = match (converted, converter.as_ref().or(decoder.as_ref())) {
        (Some(fields), Some(function)) => call.fields(function, fields)?,
        _ => b"null".to_vec(),
    };
    Ok(Outcome::Fields { valid, json })
}

/// Runs `decodeDownlink` of TS013.
pub(crate) fn decode_downlink(call: &mut Call<'_>, function: Option<&Function>) -> Result<Outcome, Failure> {
    let function = function
        .ok_or_else(|| Failure::new(Slot::Encoder, Kind::Syntax, "defines no function named `decodeDownlink`"))?;
    let fields = decode_ts013(call, function)?;
    Ok(Outcome::Fields { valid: true, json: call.fields(function, fields)? })
}

fn decode(call: &mut Call<'_>, function: &Function) -> Result<Value, Failure> {
    let decoded = match function.dialect {
        Dialect::V2 => decode_v2(call, function)?,
        Dialect::Ts013 => return decode_ts013(call, function),
        Dialect::ChirpStack3 => decode_chirpstack3(call, function)?,
    };
    function.require_object(&decoded, "must return an object")?;
    Ok(decoded)
}

fn decode_v2(call: &Call<'_>, function: &Function) -> Result<Value, Failure> {
    // The global and the argument are two arrays, so that changing one leaves the other.
    let bytes = call.byte_array(function)?;
    if function.globals.0 {
        call.set_globals(function, &call.byte_array(function)?)?;
    } else {
        call.set_globals(function, &bytes)?;
    }
    function.call(call.guest, [&bytes, &call.port(function.realm())])
}

fn decode_ts013(call: &mut Call<'_>, function: &Function) -> Result<Value, Failure> {
    let (realm, names) = (function.realm(), &call.guest.names);
    let input = call.made(function, realm.object())?;
    call.made(function, input.set(names.bytes, call.byte_array(function)?))?;
    call.made(function, input.set(names.f_port, call.port(realm)))?;
    let received = call.made(function, realm.date(call.message.time_ms))?;
    call.made(function, input.set(names.recv_time, received))?;
    let result = function.call(call.guest, [&input])?;
    function.require_object(&result, "must return an object with `data`")?;
    call.take_remarks(function, &result)?;
    let fields = call.made(function, result.get(names.data))?;
    function.require_object(&fields, "must return an object as `data`")?;
    Ok(fields)
}

fn decode_chirpstack3(call: &Call<'_>, function: &Function) -> Result<Value, Failure> {
    let variables = call.made(function, function.realm().object())?;
    function.call(call.guest, [&call.port(function.realm()), &call.byte_array(function)?, &variables])
}

fn convert(call: &Call<'_>, function: &Function, decoded: Option<Value>) -> Result<Value, Failure> {
    let converted = pass_on(call, function, decoded.as_ref())?;
    function.require_object(&converted, "must return an object")?;
    Ok(converted)
}

fn validate(call: &Call<'_>, function: &Function, converted: Option<&Value>) -> Result<bool, Failure> {
    let verdict = pass_on(call, function, converted)?;
    match verdict.primitive() {
        Primitive::Bool(valid) => Ok(valid),
        _ => Err(Failure::output(function.slot, format!("must return a boolean, got {}", describe(&verdict)))),
    }
}

/// Calls `function` with what the one before it returned, or an empty object.
fn pass_on(call: &Call<'_>, function: &Function, fields: Option<&Value>) -> Result<Value, Failure> {
    let realm = function.realm();
    let fields = match fields {
        Some(fields) => fields.share(realm),
        None => call.made(function, realm.object())?,
    };
    call.set_globals(function, &fields)?;
    function.call(call.guest, [&fields, &call.port(realm)])
}
