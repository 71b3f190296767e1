//! Runs TS013's `normalizeUplink`, which maps the decoder's object to a shared vocabulary.

use super::ts013;
use crate::call::Call;
use crate::call::function::describe;
use crate::failure::Failure;
use crate::guest::Function;
use crate::js::{Primitive, Value};

/// The input for `function`: a copy of `decoded`, because the converter and validator may change the original.
pub(crate) fn draft(call: &mut Call<'_>, function: &Function, decoded: &Value) -> Option<Value> {
    let json = call.write(function, decoded.share(decoded.realm())).map(|(json, _)| json.unwrap_or_default());
    let copied = json.and_then(|json| call.parse(function, &json));
    copied.map_err(|failure| warn(call, &failure)).ok()
}

/// Normalizes a copy and serializes the result. A failure is only a warning, because the fields do not depend on it.
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
