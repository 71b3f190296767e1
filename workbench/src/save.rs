//! Writes the smallest message of each finding as an example into `NAME.test.yaml` beside the script, in our own layout.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use runtime::{Call, Function, sanitize};
use serde_json::{Map, Value, json};
use types::Timestamp;

use crate::{
    codec::{Codec, DEFAULT_TIME_MS, EXAMPLES_MAX, kind_name, takes_bytes},
    file::disk::replace,
    fuzz::{FuzzFinding, FuzzPlan, FuzzReport},
    layout::{BadInput, own::is_own},
    run::update::{FILE_BYTES_MAX, append::appended},
    text::{
        surrogates::mark,
        yaml::{self, Node},
    },
};

/// The way to the examples in a file.
const LIST: [&str; 1] = ["examples"];
/// Members that identify an example, besides its expectation.
const CALL: [&str; 6] = ["function", "port", "bytes", "input", "time", "variables"];

/// Result of saving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The file.
    pub file: PathBuf,
    /// New examples in it; 0 if it had all of them, and then it is as it was.
    pub added: usize,
}

/// Adds an example for each finding that no example shows, which fails until the codec is mended. Changes no other.
pub fn save(report: &FuzzReport, codec: &Codec, plan: &FuzzPlan) -> Result<Saved, BadInput> {
    let new: Vec<Value> = report.findings.iter().filter(|finding| finding.example.is_none()).map(example).collect();
    let Some(script) = &codec.script_file else {
        return Err(BadInput::Nothing(format!(
            "{}: its script is in no file of its own, beside which examples could be",
            codec.id
        )));
    };
    let file = file(codec, script);
    let written = match new.is_empty() {
        true => Ok(0),
        false => write(&file, script, codec, plan, new),
    };
    match written {
        Ok(added) => Ok(Saved { file, added }),
        Err(source) => Err(BadInput::File { file: file.display().to_string(), source }),
    }
}

/// The file in our layout that the codec is from, or else the one that has the name of its script.
fn file(codec: &Codec, script: &Path) -> PathBuf {
    let places = codec.examples.iter().filter_map(|example| example.place.as_ref());
    let mut files = places.map(|place| place.file.as_path());
    let is_own_file = |file: &&Path| file.file_name().and_then(|name| name.to_str()).is_some_and(is_own);
    let other_end = script.with_extension("test.yml");
    match files.find(is_own_file) {
        Some(file) => file.to_owned(),
        None if other_end.exists() => other_end,
        None => script.with_extension("test.yaml"),
    }
}

/// Writes the examples that the file has not got, and returns how many.
fn write(file: &Path, script: &Path, codec: &Codec, plan: &FuzzPlan, mut new: Vec<Value>) -> io::Result<usize> {
    if file.symlink_metadata().is_err() {
        let dialect = plan.dialect.or(codec.dialect).map(|dialect| format!("dialect: {}\n", dialect.name()));
        let text = appended(&dialect.unwrap_or_default(), &LIST, &new).map_err(io::Error::other)?;
        OpenOptions::new().write(true).create_new(true).open(file)?.write_all(text.as_bytes())?;
        return Ok(new.len());
    }
    if fs::metadata(file)?.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    let text = fs::read_to_string(file)?;
    let root = yaml::parse(&text).map_err(|error| io::Error::other(error.reason))?;
    check_script(&root, script)?;
    let known: Vec<Value> = root.get("examples").map(Node::elements).unwrap_or_default().iter().map(call).collect();
    new.retain(|example| !known.contains(&only_call(example)));
    if new.is_empty() {
        return Ok(0);
    }
    if known.len() + new.len() > EXAMPLES_MAX {
        return Err(io::Error::other(format!("it would have more than {EXAMPLES_MAX} examples")));
    }
    replace(file, &appended(&text, &LIST, &new).map_err(io::Error::other)?)?;
    Ok(new.len())
}

fn check_script(root: &Node, script: &Path) -> io::Result<()> {
    let named = root.get("script").and_then(Node::text);
    match named.is_none_or(|named| Path::new(named).file_name() == script.file_name()) {
        true => Ok(()),
        false => Err(io::Error::other("it has the examples of another script")),
    }
}

/// The example that shows a finding.
fn example(finding: &FuzzFinding) -> Value {
    let FuzzFinding { function, call, .. } = finding;
    let mut members = Map::new();
    members.insert("description".to_owned(), json!(format!("fuzz: {}", sanitize(&finding.summary))));
    if *function != Function::Decoder {
        members.insert("function".to_owned(), json!(kind_name(*function)));
    }
    let input = finding.input.as_ref().and_then(|input| serde_json::from_str(&mark(input.get())).ok());
    match takes_bytes(*function) {
        true => {
            members.insert("port".to_owned(), json!(call.port));
            members.insert("bytes".to_owned(), json!(finding.bytes));
        }
        false => _ = members.insert("input".to_owned(), input.unwrap_or_default()),
    }
    members.extend(circumstances(call));
    members.insert("outcome".to_owned(), json!("valid"));
    Value::Object(members)
}

/// The time and variables of a call, where they are not those of any.
fn circumstances(call: &Call) -> Map<String, Value> {
    let mut members = Map::new();
    if call.time_ms != DEFAULT_TIME_MS {
        members.insert("time".to_owned(), json!(Timestamp::from_millis(call.time_ms).to_string()));
    }
    let extra: Map<String, Value> = serde_json::from_str(&mark(&call.extra)).unwrap_or_default();
    members.extend(extra.into_iter().filter(|(name, _)| name == "variables"));
    members
}

/// The call of an example in a file; payloads in one notation.
fn call(node: &Node) -> Value {
    let mut value = node.value();
    if let (Some(bytes), Some(members)) = (node.get("bytes").and_then(Node::text), value.as_object_mut()) {
        let digits: String = bytes.chars().filter(|digit| !digit.is_whitespace()).collect();
        members.insert("bytes".to_owned(), json!(digits.to_ascii_lowercase()));
    }
    only_call(&value)
}

fn only_call(example: &Value) -> Value {
    CALL.iter().filter_map(|name| Some(((*name).to_owned(), example.get(name)?.clone()))).collect()
}
