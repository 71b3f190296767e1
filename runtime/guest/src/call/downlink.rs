//! Runs the encoder.

use super::{globals, ts013};
use crate::call::function::describe;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::guest::Function;
use crate::js::{Primitive, Value};
use crate::wire::{Dialect, FailureKind, Slot};

/// Runs the encoder on the fields of the message.
pub(crate) fn encode(call: &mut Call<'_>, function: Option<&Function>) -> Result<Outcome, Failure> {
    let function =
        function.ok_or_else(|| Failure::new(Slot::Encoder, FailureKind::Syntax, "there are fields but no encoder"))?;
    let fields = call.value(function)?;
    if fields.primitive() != Primitive::Object || fields.is_array() {
        return Err(Failure::output(function.slot, "got fields that are no JSON object"));
    }
    let returned = call_encoder(call, function, fields)?;
    match function.dialect {
        Dialect::V2 | Dialect::ChirpStack3 => Ok(Outcome::Bytes { port: 0, bytes: bytes(call, function, &returned)? }),
        Dialect::Ts013 => encoded_ts013(call, function, &returned),
    }
}

/// Calls an encoder with `fields` and returns its result unchecked.
pub(crate) fn call_encoder(call: &Call<'_>, function: &Function, fields: Value) -> Result<Value, Failure> {
    let port = call.port(function.realm());
    match function.dialect {
        Dialect::V2 => {
            globals::set(call, function, &fields)?;
            function.call(call.guest, [&fields, &port])
        }
        Dialect::Ts013 => ts013::call_with_data(call, function, fields, call.message.port),
        Dialect::ChirpStack3 => function.call(call.guest, [&port, &fields, &call.variables(function)?]),
    }
}

fn encoded_ts013(call: &mut Call<'_>, function: &Function, result: &Value) -> Result<Outcome, Failure> {
    let names = &call.guest.names;
    function.require_object(result, "must return an object with `bytes`")?;
    ts013::take_remarks(call, function, result)?;
    let port = call.made(function, result.get(names.f_port))?;
    let port = match port.primitive() {
        Primitive::Undefined | Primitive::Null => 0,
        _ => byte(&port).ok_or_else(|| Failure::output(function.slot, "`fPort` must be a number from 0 to 255"))?,
    };
    let returned = call.made(function, result.get(names.bytes))?;
    Ok(Outcome::Bytes { port, bytes: bytes(call, function, &returned)? })
}

/// The bytes of the array or typed array that the encoder returned; holes are skipped.
fn bytes(call: &Call<'_>, function: &Function, returned: &Value) -> Result<Vec<u8>, Failure> {
    if !returned.is_array() && !returned.is_typed_array() {
        let message = format!("must return an array of bytes, got {}", describe(returned));
        return Err(Failure::output(function.slot, message));
    }
    let length = call.made(function, returned.length())?;
    let bytes_max = call.guest.limits().payload_bytes_max;
    if length > i64::from(bytes_max) {
        let message = format!("returned {length} bytes; at most {bytes_max} can be sent");
        return Err(Failure::output(function.slot, message));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    for index in 0..length as u32 {
        let element = call.made(function, returned.at(index))?;
        bytes.push(byte(&element).ok_or_else(|| unfit_element(function, index, &element))?);
    }
    Ok(bytes)
}

fn unfit_element(function: &Function, index: u32, element: &Value) -> Failure {
    let found = match element.primitive() {
        Primitive::Int(number) => number.to_string(),
        Primitive::Float(number) => number.to_string(),
        _ => describe(element).to_owned(),
    };
    let message = format!("must return whole numbers from 0 to 255; the one at index {index} is {found}");
    Failure::output(function.slot, message)
}

/// `value` as a number from 0 to 255.
fn byte(value: &Value) -> Option<u8> {
    match value.primitive() {
        Primitive::Int(number) => u8::try_from(number).ok(),
        Primitive::Float(number) if number.fract() == 0.0 && (0.0..=255.0).contains(&number) => Some(number as u8),
        _ => None,
    }
}
