//! Fields in, bytes out: the encoder.

use crate::call::{Call, Outcome};
use crate::dialect::{Function, describe};
use crate::failure::Failure;
use crate::js::{Primitive, Value};
use crate::json::DEPTH_MAX;
use crate::wire::{Dialect, Kind, Slot};
use std::ffi::CString;

/// The longest payload that any data rate carries.
const BYTES_MAX: i64 = 242;

/// Runs the encoder on the fields of the message.
pub(crate) fn encode(call: &mut Call<'_>, function: Option<&Function>) -> Result<Outcome, Failure> {
    let function =
        function.ok_or_else(|| Failure::new(Slot::Encoder, Kind::Syntax, "there are fields but no encoder"))?;
    let fields = fields(call, function)?;
    let realm = function.realm();
    match function.dialect {
        Dialect::V2 => {
            call.set_globals(function, &fields)?;
            let returned = function.call(call.guest, [&fields, &call.port(realm)])?;
            Ok(Outcome::Bytes { port: 0, bytes: bytes(call, function, &returned)? })
        }
        Dialect::Ts013 => encode_ts013(call, function, fields),
        Dialect::ChirpStack3 => {
            let variables = call.made(function, realm.object())?;
            let returned = function.call(call.guest, [&call.port(realm), &fields, &variables])?;
            Ok(Outcome::Bytes { port: 0, bytes: bytes(call, function, &returned)? })
        }
    }
}

fn encode_ts013(call: &mut Call<'_>, function: &Function, fields: Value) -> Result<Outcome, Failure> {
    let names = &call.guest.names;
    let input = call.made(function, function.realm().object())?;
    call.made(function, input.set(names.data, fields))?;
    let result = function.call(call.guest, [&input])?;
    function.require_object(&result, "must return an object with `bytes`")?;
    call.take_remarks(function, &result)?;
    let port = call.made(function, result.get(names.f_port))?;
    let port = match port.primitive() {
        Primitive::Undefined | Primitive::Null => 0,
        _ => byte(&port).ok_or_else(|| Failure::output(function.slot, "`fPort` must be a number from 0 to 255"))?,
    };
    let returned = call.made(function, result.get(names.bytes))?;
    Ok(Outcome::Bytes { port, bytes: bytes(call, function, &returned)? })
}

/// The fields of the message, which arrive as JSON.
fn fields(call: &Call<'_>, function: &Function) -> Result<Value, Failure> {
    let unfit = |message| Failure::new(function.slot, Kind::Output, message);
    if depth(call.message.payload) > DEPTH_MAX {
        return Err(unfit("got fields more than 32 levels deep"));
    }
    let text = CString::new(call.message.payload).map_err(|_| unfit("got fields with a zero byte"))?;
    let fields = function.realm().parse_json(&text).map_err(|_| unfit("got fields that are no JSON"))?;
    if fields.primitive() != Primitive::Object || fields.is_array() {
        return Err(unfit("got fields that are no JSON object"));
    }
    Ok(fields)
}

/// How deep brackets lie in each other, outside of strings.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The bytes in an array or typed array that the encoder returned; holes are left out.
fn bytes(call: &Call<'_>, function: &Function, returned: &Value) -> Result<Vec<u8>, Failure> {
    if !returned.is_array() && !returned.is_typed_array() {
        let message = format!("must return an array of bytes, got {}", describe(returned));
        return Err(Failure::output(function.slot, message));
    }
    let length = call.made(function, returned.length())?;
    if length > BYTES_MAX {
        return Err(Failure::output(
            function.slot,
            format!("returned {length} bytes; at most {BYTES_MAX} can be sent"),
        ));
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

/// The number from 0 to 255 that `value` is.
fn byte(value: &Value) -> Option<u8> {
    match value.primitive() {
        Primitive::Int(number) => u8::try_from(number).ok(),
        Primitive::Float(number) if number.fract() == 0.0 && (0.0..=255.0).contains(&number) => Some(number as u8),
        _ => None,
    }
}
