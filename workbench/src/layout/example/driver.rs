//! Examples of drivers for Actility's ThingPark IoT Flow, which is older than TS013: `{type, bytes, fPort, time, data}`
//! without an input object. The functions take and return a message as it is, not as `data` of something.

use runtime::Function;
use serde_json::{Map, Value};

use super::message::{self, Stated};
use crate::{
    codec::{Example, Input},
    layout::dir::Dir,
    text::surrogates::to_text,
};

/// Describes a package.
const DESCRIPTION: &str = "driver.yaml";

/// Returns true if an example is written like this.
pub(in super::super) fn is_example(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    has("bytes") && has("data") && !has("input")
}

/// Reads an example: a downlink becomes one for each function for downlinks that the script has. Fails if it has none.
pub(in super::super) fn examples(value: &Value, script: &str) -> Result<Vec<Stated>, String> {
    let functions = match value.get("type").and_then(Value::as_str) {
        Some("uplink") => [Some(Function::Decoder), None],
        Some("downlink") => {
            let own = |name: &str, function| script.contains(name).then_some(function);
            [own("decodeDownlink", Function::DecodeDownlink), own("encodeDownlink", Function::Encoder)]
        }
        _ => return Err("the `type` is neither `uplink` nor `downlink`".to_owned()),
    };
    let examples: Vec<Stated> =
        functions.into_iter().flatten().map(|function| example(value, function)).collect::<Result<_, _>>()?;
    match examples.is_empty() {
        true => Err("the script has no function for downlinks".to_owned()),
        false => Ok(examples),
    }
}

/// Returns true if a package declares that its functions are those of an older driver.
pub(in super::super) fn is_signed(dir: &Dir<'_>) -> bool {
    let text = dir.has(DESCRIPTION).then(|| dir.text(DESCRIPTION).ok()).flatten().unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("signature:")).any(|signature| signature.trim() == "actility")
}

/// The example of such a package: written as in TS013, but its encoder takes the message as it is.
pub(in super::super) fn bare(example: Example) -> Example {
    match example.input {
        Input::Json(input) if example.function == Function::Encoder => {
            let message = input.get("data").cloned().unwrap_or_default();
            Example { input: Input::Json(message), wrapped: false, ..example }
        }
        input => Example { input, ..example },
    }
}

fn example(value: &Value, function: Function) -> Result<Stated, String> {
    let only = |names: &[&str]| -> Map<String, Value> {
        names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(*name)?.clone()))).collect()
    };
    let data = value.get("data").cloned().unwrap_or_default();
    let (input, expected, member) = match function {
        Function::Encoder => {
            let mut expected = Value::Object(only(&["bytes", "fPort"]));
            message::read_hex_bytes(&mut expected);
            (data, expected, None)
        }
        _ => (Value::Object(only(&["bytes", "fPort", "time"])), data, Some(("data", false))),
    };
    let example = message::example(function, &input, Some(expected))?;
    let description = to_text(value.get("description").and_then(Value::as_str).unwrap_or_default());
    Ok(Stated { example: Example { description, wrapped: false, ..example }, member })
}
