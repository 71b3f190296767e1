//! Our own layout: `NAME.test.yaml` beside `NAME.js`.

use runtime::{Dialect, Function};
use serde_json::{Map, Value};

use super::{Found, dir::Dir, example::message};
use crate::{
    codec::{Codec, Example, Expected, Input, Tolerance, kind, takes_bytes},
    text::{
        place::{Expectation, Notation, Place, Step},
        yaml::{self, Node},
    },
};

const ENDS: [&str; 2] = [".test.yaml", ".test.yml"];
const OF_FILES: [&str; 3] = ["script", "dialect", "examples"];
const OF_EXAMPLES: [&str; 10] =
    ["description", "function", "port", "bytes", "input", "time", "variables", "output", "outcome", "ignore_empty"];

/// Reads the codecs of a directory.
pub(super) fn read(dir: &Dir<'_>, found: &mut Found) {
    for name in dir.names.iter().filter(|name| is_own(name)) {
        let text = match dir.text(name) {
            Ok(text) => text,
            Err(problem) => {
                found.problem(problem);
                continue;
            }
        };
        match yaml::parse(&text) {
            Ok(root) => read_file(dir, name, &root, found),
            Err(error) => found.problem(dir.bad(name, error.line, &error.reason)),
        }
    }
}

pub(crate) fn is_own(name: &str) -> bool {
    ENDS.iter().any(|end| name.ends_with(end))
}

fn read_file(dir: &Dir<'_>, name: &str, root: &Node, found: &mut Found) {
    let stem = ENDS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let (script_name, dialect) = match head(root) {
        Ok((script, dialect)) => (script.unwrap_or_else(|| format!("{stem}.js")), dialect),
        Err((line, reason)) => return found.problem(dir.bad(name, line, &reason)),
    };
    let script = match dir.script(&script_name) {
        Ok(script) => script,
        Err(problem) => return found.problem(problem),
    };
    let mut examples = Vec::new();
    for (index, node) in root.get("examples").map(Node::elements).unwrap_or_default().iter().enumerate() {
        match example(node) {
            Ok(example) => {
                let path = vec![Step::name("examples"), Step::Index(index), Step::name("output")];
                // An outcome is no value, and there cannot be one beside it.
                let expectation = Expectation { notation: Notation::Yaml, path, hex: false };
                let expectation = node.get("outcome").is_none().then_some(expectation);
                let place = Some(Place { expectation, ..dir.place(name, node.line) });
                examples.push(Example { place, ..example });
            }
            Err((line, reason)) => found.problem(dir.bad(name, line, &format!("example {}: {reason}", index + 1))),
        }
    }
    found.codec(Codec { dialect, examples, ..Codec::new(dir.id(stem), script, Some(dir.path(&script_name))) });
}

/// Reads the members of a file besides its examples: the script and the dialect. An error has the line.
fn head(root: &Node) -> Result<(Option<String>, Option<Dialect>), (usize, String)> {
    if root.is_list() {
        return Err((root.line, "it is a list: write `examples:` above it".to_owned()));
    }
    if !root.is_container() && root.value().is_null() {
        return Err((root.line, "it is empty: write `examples:`, and a list of them".to_owned()));
    }
    known(root, &OF_FILES)?;
    let line_of = |member: &str| root.get(member).unwrap_or(root).line;
    let text = |member: &str| match root.get(member).map(Node::value) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err((line_of(member), format!("`{member}` must be text"))),
    };
    let dialect = match text("dialect")?.map(|name| Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)) {
        Some(None) => return Err((line_of("dialect"), "`dialect` must be ts013, v2 or chirpstack3".to_owned())),
        dialect => dialect.flatten(),
    };
    match root.get("examples") {
        Some(node) if !node.is_list() => Err((node.line, "`examples` must be a list".to_owned())),
        _ => Ok((text("script")?, dialect)),
    }
}

/// Refuses members that would be ignored. An error has the line.
fn known(node: &Node, names: &[&str]) -> Result<(), (usize, String)> {
    let error = |node: &Node, reason: String| Err((node.line, format!("{reason} {}", names.join(", "))));
    match node.names().find(|name| !names.contains(name)) {
        _ if !node.is_object() => error(node, "it must be an object, with some of".to_owned()),
        Some(name) => error(node.get(name).unwrap_or(node), format!("unknown member `{name}`: there are")),
        None => Ok(()),
    }
}

/// An example, or the line of its fault and the reason.
fn example(node: &Node) -> Result<Example, (usize, String)> {
    known(node, &OF_EXAMPLES)?;
    parse(node).map_err(|reason| (node.line, reason))
}

fn parse(node: &Node) -> Result<Example, String> {
    let value = |member: &str| node.get(member).map(Node::value);
    let text = |member: &str| match value(member) {
        Some(Value::String(text)) => Ok(Some(text)),
        None => Ok(None),
        Some(_) => Err(format!("`{member}` must be text")),
    };
    let name = text("function")?.unwrap_or_else(|| "uplink".to_owned());
    let function = kind(&name).ok_or_else(|| format!("there is no function `{name}`: see docs/functions.md"))?;
    let other = if takes_bytes(function) { "input" } else { "bytes" };
    if node.get(other).is_some() {
        return Err(format!("`{name}` takes no `{other}`"));
    }
    let mut input = Map::new();
    input.insert("port".to_owned(), value("port").unwrap_or_default());
    if let Some(time) = text("time")? {
        time.parse::<types::Timestamp>().map_err(|_| "`time` must be as in 2026-01-01T00:00:00Z".to_owned())?;
        input.insert("time".to_owned(), Value::String(time));
    }
    let bytes = match node.get("bytes") {
        _ if !takes_bytes(function) => Some(Value::String(String::new())),
        Some(node) => Some(node.text().map_or_else(|| node.value(), |text| Value::String(text.to_owned()))),
        None => None,
    };
    input.insert("bytes".to_owned(), bytes.ok_or("`bytes` are missing")?);
    let read = message::example(Function::Decoder, &Value::Object(input), value("output"))?;
    let argument = match takes_bytes(function) {
        true => read.input,
        false => Input::Json(value("input").ok_or("`input` is missing")?),
    };
    let extra = value("variables").map(|variables| ("variables".to_owned(), variables)).into_iter().collect();
    let expected = match (text("outcome")?.as_deref(), read.expected) {
        (None, expected) => expected,
        (Some("throws"), Expected::Unknown) => Expected::Throws,
        (Some("undefined"), Expected::Unknown) => Expected::Undefined,
        (Some("timeout"), Expected::Unknown) => Expected::Timeout,
        (Some("valid"), Expected::Unknown) => Expected::Valid,
        (Some("throws" | "undefined" | "timeout" | "valid"), _) => {
            return Err("it has both `output` and `outcome`".to_owned());
        }
        (Some(_), _) => return Err("`outcome` must be throws, undefined, timeout or valid".to_owned()),
    };
    Ok(Example {
        description: text("description")?.unwrap_or_default(),
        function,
        input: argument,
        extra,
        expected,
        wrapped: false,
        tolerance: match value("ignore_empty") {
            Some(Value::Bool(true)) => Tolerance::Empty,
            _ => Tolerance::None,
        },
        ..read
    })
}
