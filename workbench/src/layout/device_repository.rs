//! The device repository of The Things Network: `NAME-codec.yaml` names the script of each function, with examples.

use runtime::Function;
use serde_json::Value;

use super::{
    BadInput, Found,
    dir::Dir,
    example::{message, unknown_members::not_misspelt},
};
use crate::{
    codec::{Codec, Example, Tolerance},
    text::{
        place::{Expectation, Notation, Step},
        yaml::{self, Node},
    },
};

const SECTIONS: [(&str, Function); 3] = [
    ("uplinkDecoder", Function::Decoder),
    ("downlinkEncoder", Function::Encoder),
    ("downlinkDecoder", Function::DecodeDownlink),
];

const OF_SECTIONS: [&str; 2] = ["fileName", "examples"];
const OF_EXAMPLES: [&str; 4] = ["description", "input", "output", "normalizedOutput"];

/// Reads the codecs of a directory.
pub(super) fn read(dir: &Dir<'_>, found: &mut Found) {
    for name in dir.names.iter().filter(|name| is_yaml(name)) {
        match dir.text(name) {
            // A repository has many other files in YAML.
            Ok(text) if has_section(&text) => read_file(dir, name, &text, found),
            Ok(_) => {}
            Err(problem) if is_codec(name) || dir.start(name).is_ok_and(|start| has_section(&start)) => {
                found.problem(problem);
            }
            Err(_) => {}
        }
    }
}

pub(super) fn is_yaml(name: &str) -> bool {
    (name.ends_with(".yaml") || name.ends_with(".yml")) && !super::own::is_own(name)
}

fn has_section(text: &str) -> bool {
    text.lines().any(|line| SECTIONS.iter().any(|(section, _)| line.starts_with(section)))
}

fn read_file(dir: &Dir<'_>, name: &str, text: &str, found: &mut Found) {
    let root = match yaml::parse(text) {
        Ok(root) => root,
        Err(error) => return found.problem(dir.bad(name, error.line, &error.reason)),
    };
    let mut codecs: Vec<(String, Vec<Example>)> = Vec::new();
    let names = SECTIONS.map(|(section, _)| section);
    if let Err(reason) = not_misspelt(root.names(), &names) {
        found.problem(dir.bad(name, root.line, &reason));
    }
    for (section, function) in SECTIONS {
        let Some(node) = root.get(section) else { continue };
        let Some(script) = node.get("fileName").and_then(|node| node.value().as_str().map(str::to_owned)) else {
            found.problem(dir.bad(name, node.line, &format!("`fileName` is missing in `{section}`")));
            continue;
        };
        let examples = examples(dir, name, (section, function), node, found);
        match codecs.iter_mut().find(|(other, _)| *other == script) {
            Some((_, others)) => others.extend(examples),
            None => codecs.push((script, examples)),
        }
    }
    let is_split = codecs.len() > 1;
    for (script_name, examples) in codecs {
        let script = match dir.script(&script_name) {
            Ok(script) => script,
            Err(problem) => {
                found.problem(problem);
                continue;
            }
        };
        let id = dir.id(stem(name));
        let id = if is_split { format!("{id}:{script_name}") } else { id };
        found.codec(Codec { examples, ..Codec::new(id, script, Some(dir.path(&script_name))) });
    }
}

/// Returns true if the name can only be that of a codec.
fn is_codec(name: &str) -> bool {
    name.ends_with("-codec.yaml") || name.ends_with("-codec.yml")
}

/// The name of a codec without what all of them have.
fn stem(name: &str) -> &str {
    let name = name.trim_end_matches(".yaml").trim_end_matches(".yml");
    name.strip_suffix("-codec").unwrap_or(name)
}

fn examples(
    dir: &Dir<'_>,
    name: &str,
    (section, function): (&str, Function),
    node: &Node,
    found: &mut Found,
) -> Vec<Example> {
    let mut examples = Vec::new();
    let list = match list(node) {
        Ok(list) => list,
        Err((line, reason)) => {
            found.problem(dir.bad(name, line, &format!("{reason} in `{section}`")));
            return examples;
        }
    };
    for (index, example) in list.iter().enumerate() {
        let path = [Step::name(section), Step::name("examples"), Step::Index(index)];
        for (member, function) in [("output", function), ("normalizedOutput", Function::NormalizeUplink)] {
            if function == Function::NormalizeUplink && example.get(member).is_none() {
                continue;
            }
            match read_example(dir, name, function, example, member) {
                Ok(mut read) => {
                    let path = path.iter().cloned().chain([Step::name(member)]).collect();
                    let expectation = Expectation { notation: Notation::Yaml, path, hex: false };
                    if let Some(place) = &mut read.place {
                        place.expectation = Some(expectation);
                    }
                    examples.push(read);
                }
                Err(problem) => found.problem(problem),
            }
        }
    }
    examples
}

/// The list of examples of a section; an error has the line.
fn list(section: &Node) -> Result<&[Node], (usize, String)> {
    not_misspelt(section.names(), &OF_SECTIONS).map_err(|reason| (section.line, reason))?;
    match section.get("examples") {
        Some(node) if !node.is_list() => Err((node.line, "`examples` must be a list".to_owned())),
        node => Ok(node.map(Node::elements).unwrap_or_default()),
    }
}

fn read_example(
    dir: &Dir<'_>,
    name: &str,
    function: Function,
    example: &Node,
    member: &str,
) -> Result<Example, BadInput> {
    not_misspelt(example.names(), &OF_EXAMPLES).map_err(|reason| dir.bad(name, example.line, &reason))?;
    let value = |member: &str| example.get(member).map(Node::value);
    // A normalizer gets what the decoder returns.
    let input = if function == Function::NormalizeUplink { value("output") } else { value("input") };
    let read = message::example(function, &input.unwrap_or_default(), value(member));
    let read = read.map_err(|reason| dir.bad(name, example.line, &reason))?;
    let description = value("description").as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let place = Some(dir.place(name, example.line));
    Ok(Example { description, place, tolerance: Tolerance::Repository, ..read })
}
