//! The decoder's object in the words that all devices share: `normalizeUplink` of TS013.

use crate::call::Call;
use crate::dialect::{Function, describe};
use crate::failure::Failure;
use crate::js::{Primitive, Value};
use crate::ts013;

/// What `function` makes of `decoded`, as JSON. Its failing is a warning, because the fields are there without it.
pub(crate) fn run(call: &mut Call<'_>, function: &Function, decoded: Value) -> Option<Vec<u8>> {
    match normalize(call, function, decoded) {
        Ok(json) => json,
        Err(failure) => {
            call.warn(format!("`normalizeUplink`: {}", failure.message()));
            None
        }
    }
}

fn normalize(call: &mut Call<'_>, function: &Function, decoded: Value) -> Result<Option<Vec<u8>>, Failure> {
    let result = ts013::call_with_data(call, function, decoded, 0)?;
    let Some(normalized) = ts013::data(call, function, &result)? else { return Ok(None) };
    if normalized.primitive() != Primitive::Object || normalized.is_function() {
        let found = describe(&normalized);
        return Err(Failure::output(
            function.slot,
            format!("must return an object or an array as `data`, got {found}"),
        ));
    }
    call.json(function, normalized)
}
