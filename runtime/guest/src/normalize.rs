//! The decoder's object in the words that all devices share: `normalizeUplink` of TS013.

use crate::call::Call;
use crate::dialect::{Function, describe};
use crate::failure::Failure;
use crate::js::{Primitive, Value};
use crate::ts013;

/// What `function` will get: a copy of `decoded`, which others may change until then.
pub(crate) fn draft(call: &mut Call<'_>, function: &Function, decoded: &Value) -> Option<Value> {
    let json = call.write(function, decoded.share(decoded.realm())).map(|(json, _)| json.unwrap_or_default());
    let copied = json.and_then(|json| call.parse(function, &json));
    copied.map_err(|failure| warn(call, &failure)).ok()
}

/// What `function` makes of a draft, as JSON. Its failing is a warning, because the fields are there without it.
pub(crate) fn run(call: &mut Call<'_>, function: &Function, draft: Value) -> Option<Vec<u8>> {
    normalize(call, function, draft).unwrap_or_else(|failure| {
        warn(call, &failure);
        None
    })
}

fn warn(call: &mut Call<'_>, failure: &Failure) {
    call.warn(format!("`normalizeUplink`: {}", failure.message()));
}

fn normalize(call: &mut Call<'_>, function: &Function, draft: Value) -> Result<Option<Vec<u8>>, Failure> {
    let result = ts013::call_with_data(call, function, draft, 0)?;
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
