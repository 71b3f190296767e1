//! Milesight's repository: `NAME-codec.json` lists the fields that `NAME-decoder.js` finds in one payload.

use runtime::Function;
use serde_json::Value;

use super::{Found, dir::Dir, example::message};
use crate::codec::{Example, Expected, Input};

const END: &str = "-codec.json";
/// The port on which these devices send.
const PORT: u8 = 85;

/// Reads the codecs of a directory.
pub(super) fn read(dir: &Dir<'_>, found: &mut Found) {
    for name in dir.names.iter().filter(|name| is_milesight(name)) {
        let stem = name.trim_end_matches(END);
        let (decoder, encoder) = (format!("{stem}-decoder.js"), format!("{stem}-encoder.js"));
        if dir.has(&decoder) {
            let examples = match dir.value(name) {
                Ok((value, _)) => example(&value).map_err(|reason| dir.bad(name, 1, &reason)),
                Err(problem) => Err(problem),
            };
            let examples = examples.unwrap_or_else(|problem| {
                found.problem(problem);
                None
            });
            let place = Some(dir.place(name, 1));
            let examples = examples.into_iter().map(|example| Example { place: place.clone(), ..example });
            found.script(dir, &dir.id(stem), &decoder, examples.collect());
        }
        if dir.has(&encoder) {
            found.script(dir, &format!("{}:encoder", dir.id(stem)), &encoder, Vec::new());
        }
    }
}

pub(super) fn is_milesight(name: &str) -> bool {
    name.ends_with(END)
}

/// The payload, and the fields that may be found in it; none without a payload.
///
/// The values of the list are defaults for other programs, and not those of the payload.
fn example(codec: &Value) -> Result<Option<Example>, String> {
    let Some(payload) = codec.get("bytes").filter(|bytes| bytes.as_str().is_some_and(|text| !text.is_empty())) else {
        return Ok(None);
    };
    let input = Input::Bytes(message::bytes(payload)?);
    let objects = codec.get("object").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let ids = objects.iter().filter_map(|object| object.get("id")?.as_str());
    let listed =
        ids.map(|id| id.split(['.', '[']).next().unwrap_or(id)).map(|id| id.trim_end_matches("_item").to_owned());
    let (port, expected) = (PORT, Expected::Listed(listed.collect()));
    let description = "finds only fields that are listed".to_owned();
    Ok(Some(Example { port, expected, description, ..Example::new(Function::Decoder, input) }))
}
