//! Calls TS013 functions: an input object in, a result with `data` or `bytes`, `warnings` and `errors` out.

use crate::call::Call;
use crate::call::function::describe;
use crate::failure::{Failure, cut};
use crate::guest::Function;
use crate::js::{Primitive, Value};
use crate::wire::FailureKind;

/// Calls `decodeUplink` or `decodeDownlink` with the payload.
pub(crate) fn call_with_bytes(call: &Call<'_>, function: &Function) -> Result<Value, Failure> {
    let (realm, names) = (function.realm(), &call.guest.names);
    let input = call.made(function, realm.object())?;
    call.made(function, input.set(names.bytes, call.byte_array(function)?))?;
    call.made(function, input.set(names.f_port, call.port(realm)))?;
    let received = call.made(function, realm.date(call.message.time_ms))?;
    call.made(function, input.set(names.recv_time, received))?;
    call_with(call, function, &input)
}

/// Calls `encodeDownlink` or `normalizeUplink` with `data`; port 0 means none.
pub(crate) fn call_with_data(call: &Call<'_>, function: &Function, data: Value, port: u8) -> Result<Value, Failure> {
    let (realm, names) = (function.realm(), &call.guest.names);
    let input = call.made(function, realm.object())?;
    call.made(function, input.set(names.data, data))?;
    if port != 0 {
        call.made(function, input.set(names.f_port, realm.number(f64::from(port))))?;
    }
    call_with(call, function, &input)
}

fn call_with(call: &Call<'_>, function: &Function, input: &Value) -> Result<Value, Failure> {
    if let Some(extra) = call.extra(function)? {
        let keys = call.made(function, extra.keys())?;
        for key in keys.iter() {
            call.made(function, extra.get(key).and_then(|member| input.set(key, member)))?;
        }
    }
    function.call(call.guest, [input])
}

/// The `data` of a result, if present. Records its warnings; `errors` make it a failure.
pub(crate) fn data(call: &mut Call<'_>, function: &Function, result: &Value) -> Result<Option<Value>, Failure> {
    function.require_object(result, "must return an object with `data`")?;
    take_remarks(call, function, result)?;
    let data = call.made(function, result.get(call.guest.names.data))?;
    Ok(if matches!(data.primitive(), Primitive::Undefined | Primitive::Null) { None } else { Some(data) })
}

/// Warns if a result without `data` has other members than TS013 gives it: nothing reads fields there.
pub(crate) fn note_stray_fields(call: &mut Call<'_>, function: &Function, result: &Value) -> Result<(), Failure> {
    let names = &call.guest.names;
    let known = [names.data, names.errors, names.warnings];
    let keys = call.made(function, result.keys())?;
    if keys.iter().any(|key| !known.contains(&key)) {
        call.warn("returned an object without `data`, which is where fields belong".to_owned());
    }
    Ok(())
}

/// Records the `warnings` of a result; `errors` make it a failure.
pub(crate) fn take_remarks(call: &mut Call<'_>, function: &Function, result: &Value) -> Result<(), Failure> {
    let names = &call.guest.names;
    for warning in texts(call, function, call.made(function, result.get(names.warnings))?)? {
        call.warn(warning);
    }
    let errors = texts(call, function, call.made(function, result.get(names.errors))?)?;
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::new(function.slot, FailureKind::Thrown, errors.join("; ")))
}

/// Reads `warnings` or `errors`: an array, or a single value.
fn texts(call: &Call<'_>, function: &Function, value: Value) -> Result<Vec<String>, Failure> {
    let values = match value.primitive() {
        Primitive::Undefined | Primitive::Null | Primitive::Bool(false) => Vec::new(),
        // Some codecs return an empty string instead of an empty list.
        Primitive::Text if call.made(function, value.text())?.is_empty() => Vec::new(),
        Primitive::Object if value.is_array() => {
            let most = call.guest.limits().warnings_max;
            let length = call.made(function, value.length())?.clamp(0, i64::from(most)) as u32;
            (0..length).map(|index| call.made(function, value.at(index))).collect::<Result<_, _>>()?
        }
        _ => vec![value],
    };
    values.iter().map(|value| remark(call, function, value)).collect()
}

fn remark(call: &Call<'_>, function: &Function, value: &Value) -> Result<String, Failure> {
    if value.primitive() == Primitive::Symbol {
        return Ok(describe(value).to_owned());
    }
    let text = call.made(function, value.text())?;
    Ok(cut(&text, call.guest.limits().message_bytes_max))
}
