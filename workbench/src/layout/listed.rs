//! Layouts with a list of examples in a file of JSON: ChirpStack's device profiles, and packages of TS013.

use runtime::Function;
use serde_json::{Map, Value};

use super::{
    Found,
    dir::Dir,
    example::{
        driver,
        message::{self, Stated},
        unknown_members::not_misspelt,
    },
    script::entry,
};
use crate::{
    codec::{Codec, Example, Tolerance, kind},
    text::{
        place::{Expectation, Notation, Place, Step},
        span,
        surrogates::to_text,
    },
};

/// ChirpStack writes `[{name, input, expected}]`.
const DECODE: &str = "test_decode_";
const ENCODE: &str = "test_encode_";
/// Packages write `[{type, description, input, output}]`.
const EXAMPLES: &str = "examples.json";

/// Reads the codecs of device profiles: `NAME.js` beside `test_decode_NAME.json` and `test_encode_NAME.json`.
pub(super) fn read_profiles(dir: &Dir<'_>, found: &mut Found) {
    for name in dir.names.iter().filter(|name| name.ends_with(".js")) {
        let stem = name.trim_end_matches(".js");
        let (decode, encode) = (format!("{DECODE}{stem}.json"), format!("{ENCODE}{stem}.json"));
        if !dir.has(&decode) && !dir.has(&encode) {
            continue;
        }
        let mut examples = Vec::new();
        for (file, function) in [(decode, Function::Decoder), (encode, Function::Encoder)] {
            if dir.has(&file) {
                let read = |value: &Value| Ok(vec![example(value, function, "expected")?]);
                examples.extend(read_examples(dir, &file, read, found));
            }
        }
        found.script(dir, &dir.id(stem), name, examples);
    }
    for name in dir.names.iter().filter(|name| is_profile(name)) {
        let script = script_of_profile(name);
        if !dir.has(&script) {
            found.problem(dir.orphan(name, &format!("there is no {script} beside it")));
        }
    }
}

/// The script that `test_decode_NAME.json` or `test_encode_NAME.json` is about.
fn script_of_profile(name: &str) -> String {
    let stem = name.trim_end_matches(".json");
    let stem = stem.strip_prefix(DECODE).or_else(|| stem.strip_prefix(ENCODE));
    format!("{}.js", stem.unwrap_or_default())
}

/// Returns true if the file with this name has examples of a device profile's script.
pub(super) fn tests(name: &str, script: &str) -> bool {
    is_profile(name) && script_of_profile(name) == script
}

/// Reads the codecs of packages: `examples.json` or `NAME.examples.json`.
pub(super) fn read_packages(dir: &Dir<'_>, found: &mut Found) {
    for name in dir.names.iter().filter(|name| is_package(name)) {
        let stem = name.strip_suffix(EXAMPLES).unwrap_or_default().trim_end_matches('.');
        let Some(script) = script_of(dir, stem) else {
            let reason = "there is no script beside it: `main` of package.json, index.js or main.js";
            found.problem(dir.orphan(name, reason));
            continue;
        };
        let text = match dir.script(&script) {
            Ok(text) => text,
            Err(problem) => {
                found.problem(problem);
                continue;
            }
        };
        let examples = read_examples(dir, name, |value| read_package(value, &text), found);
        let is_signed = driver::is_signed(dir);
        let examples = examples.into_iter().map(|example| {
            let example = if is_signed { driver::bare(example) } else { example };
            Example { tolerance: Tolerance::Package, ..example }
        });
        found.codec(Codec {
            examples: examples.collect(),
            ..Codec::new(dir.id(stem), with_driver(text), Some(dir.path(&script)))
        });
    }
}

/// Reads an example of a package. Fails if its type is unknown.
fn read_package(value: &Value, script: &str) -> Result<Vec<Stated>, String> {
    if driver::is_example(value) {
        return driver::examples(value, script);
    }
    let function = kind(value.get("type").and_then(Value::as_str).unwrap_or("uplink"));
    Ok(vec![example(value, function.ok_or("the `type` is none of TS013")?, "output")?])
}

pub(super) fn is_profile(name: &str) -> bool {
    name.ends_with(".json") && (name.starts_with(DECODE) || name.starts_with(ENCODE))
}

pub(super) fn is_package(name: &str) -> bool {
    name == EXAMPLES || name.ends_with(&format!(".{EXAMPLES}"))
}

/// A bundle of functions that are members of a global `driver`, made global as other platforms want them.
fn with_driver(script: String) -> String {
    if !script.contains("var driver;") || script.contains("function decodeUplink") && !script.contains("driver=") {
        return script;
    }
    let names = ["decodeUplink", "decodeDownlink", "encodeDownlink"].iter().filter(|name| script.contains(**name));
    let functions = names.map(|name| format!("var {name} = driver.{name};"));
    format!("{script}\n{}", functions.collect::<String>())
}

/// The script that `STEM.examples.json` is about, in the same directory, where a single one may have any name, or, if
/// that has none, in the one above.
fn script_of(dir: &Dir<'_>, stem: &str) -> Option<String> {
    let main = || {
        let (package, _) = dir.has("package.json").then(|| dir.value("package.json").ok()).flatten()?;
        let main = package.get("main")?.as_str()?.trim_start_matches("./");
        dir.has(main).then(|| main.to_owned())
    };
    let beside = |name: &str| dir.has(name).then(|| name.to_owned());
    let own = (!stem.is_empty()).then(|| format!("{stem}.js")).filter(|name| dir.has(name));
    let above = || {
        let exists = |name: &str| dir.script(name).is_ok().then(|| name.to_owned());
        dir.below.parent().and_then(|_| exists("../index.js").or_else(|| exists("../main.js")))
    };
    let single = || {
        let mut scripts = dir.names.iter().filter(|name| entry::is_codec(dir, name));
        scripts.next().filter(|_| scripts.next().is_none()).cloned()
    };
    let beside = || beside("index.js").or_else(|| beside("main.js")).or_else(single);
    own.or_else(main).or_else(beside).or_else(above)
}

/// Reads a list of examples, each of which may stand for several.
fn read_examples(
    dir: &Dir<'_>,
    name: &str,
    read: impl Fn(&Value) -> Result<Vec<Stated>, String>,
    found: &mut Found,
) -> Vec<Example> {
    let (value, text) = match dir.value(name) {
        Ok(read) => read,
        Err(problem) => {
            found.problem(problem);
            return Vec::new();
        }
    };
    let Value::Array(values) = value else {
        found.problem(dir.bad(name, 1, "it must be a list of examples"));
        return Vec::new();
    };
    let lines = span::lines(&text, &[]);
    let mut examples = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let line = lines.get(index).copied().unwrap_or(1);
        let placed = |Stated { example, member }| {
            let path = |member| vec![Step::Index(index), Step::name(member)];
            let expectation =
                member.map(|(member, hex)| Expectation { notation: Notation::Json, path: path(member), hex });
            Example { place: Some(Place { expectation, ..dir.place(name, line) }), ..example }
        };
        match read(value) {
            Ok(stated) => examples.extend(stated.into_iter().map(placed)),
            Err(reason) => found.problem(dir.bad(name, line, &format!("example {}: {reason}", index + 1))),
        }
    }
    examples
}

/// An example whose `member` has what is expected.
fn example(value: &Value, function: Function, member: &'static str) -> Result<Stated, String> {
    let names = value.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    not_misspelt(names, &[member, "input", "description"])?;
    let mut expected = value.get(member).cloned();
    let hex = expected.as_mut().is_some_and(message::read_hex_bytes);
    let example = message::example(function, value.get("input").unwrap_or(&Value::Null), expected)?;
    let description = ["name", "description"].iter().find_map(|name| value.get(*name)?.as_str());
    let example = Example { description: to_text(description.unwrap_or_default()), ..example };
    Ok(Stated { example, member: Some((member, hex)) })
}
