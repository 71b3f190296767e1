//! Changes a text of YAML.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{
    change::{Change, NOT_THE_SAME, Target, apply, with},
    members::Members,
};
use crate::{
    codec::compare::differences,
    text::{
        place::Step,
        surrogates::to_json,
        yaml::{self, Node},
        yaml_text,
    },
};

/// The end of a line on Windows.
const CRLF: &str = "\r\n";

/// `text` with `targets`, if it then means what it should: members come and go where they stand, or else the whole object
/// is written.
pub(super) fn replaced(text: &str, targets: &[Target<'_>]) -> Result<String, String> {
    // What is written has the ends of lines that the file has.
    if text.contains(CRLF) && text.matches(CRLF).count() == text.matches('\n').count() {
        return replaced(&text.replace(CRLF, "\n"), targets).map(|new| new.replace('\n', CRLF));
    }
    let root = yaml::parse(text).map_err(|error| error.reason)?;
    written(text, &root, targets, Detail::Members).or_else(|_| written(text, &root, targets, Detail::Values))
}

/// Kinds of changes of an object that has other members than before.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Members,
    Values,
}

fn written(text: &str, root: &Node, targets: &[Target<'_>], detail: Detail) -> Result<String, String> {
    let mut changes = Vec::new();
    for target in targets {
        change(text, root, target, detail, &mut changes)?;
    }
    let new = apply(text, changes)?;
    let expected = with(root.value(), targets).ok_or(NOT_THE_SAME)?;
    match yaml::parse(&new) {
        Ok(read) if differences(&expected, &read.value(), false).is_empty() => Ok(new),
        _ => Err(NOT_THE_SAME.to_owned()),
    }
}

fn change(
    text: &str,
    root: &Node,
    target: &Target<'_>,
    detail: Detail,
    changes: &mut Vec<Change>,
) -> Result<(), String> {
    let outer = target.path.split_last().map(|(_, outer)| outer).unwrap_or_default();
    let (Some(Step::Name(name)), Some(example)) = (target.path.last(), root.find(outer)) else {
        return Err("the example is gone".to_owned());
    };
    if let Some(node) = example.get(name) {
        push(text, node, &target.value, detail, changes);
        return Ok(());
    }
    if begins_with(text, example, &['{']) {
        let new = format!("{name}: {}", yaml_text::flow(&target.value));
        changes.push(match example.last_member() {
            Some(last) => (last.range.end..last.range.end, format!(", {new}")),
            None => (example.range.start + 1..example.range.start + 1, new),
        });
        return Ok(());
    }
    let end = end_of_line(text, example.range.end);
    let indent = " ".repeat(example.column);
    changes.push((end..end, format!("\n{indent}{name}: {}", yaml_text::flow(&target.value))));
    Ok(())
}

/// Replaces what differs: only some of the values in it where its members stay the same, so that comments remain.
fn push(text: &str, node: &Node, value: &Value, detail: Detail, changes: &mut Vec<Change>) {
    if to_json(&node.value()) == to_json(value) {
        return;
    }
    // What an alias stands for is written elsewhere.
    if !begins_with(text, node, &['*']) {
        match value {
            Value::Object(members) if node.is_object() && node.names().eq(members.keys()) => {
                let nodes = members.iter().filter_map(|(name, value)| Some((node.get(name)?, value)));
                return nodes.for_each(|(node, value)| push(text, node, value, detail, changes));
            }
            Value::Object(members) if detail == Detail::Members => {
                let mut within = Vec::new();
                if push_members(text, node, members, &mut within).is_some() {
                    return changes.extend(within);
                }
            }
            Value::Array(values) if !node.elements().is_empty() && node.elements().len() == values.len() => {
                let nodes = node.elements().iter().zip(values);
                return nodes.for_each(|(node, value)| push(text, node, value, detail, changes));
            }
            _ => {}
        }
    }
    let is_block = node.is_container() && !begins_with(text, node, &['{', '[', '*', '&', '!']);
    let new = match is_block {
        true => yaml_text::block(value, node.column),
        // Right after the colon.
        false if node.range.is_empty() => format!(" {}", yaml_text::flow(value)),
        false => yaml_text::flow(value),
    };
    changes.push((node.range.clone(), new));
}

/// The same where members come or go; none if they cannot in their place.
fn push_members(text: &str, node: &Node, new: &Map<String, Value>, changes: &mut Vec<Change>) -> Option<()> {
    let members = Members::new(node.names(), new)?;
    let last = node.get(members.kept.last()?)?;
    for name in &members.kept {
        push(text, node.get(name)?, new.get(*name)?, Detail::Members, changes);
    }
    for name in &members.removed {
        changes.push((lines_of(text, node, name)?, String::new()));
    }
    let is_flow = begins_with(text, node, &['{']);
    let end = if is_flow { last.range.end } else { end_of_line(text, last.range.end) };
    for (name, value) in members.added {
        let member = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
        let new = match is_flow {
            true => format!(", {}: {}", yaml_text::flow(&Value::from(name)), yaml_text::flow(value)),
            false => format!("\n{:2$}{}", "", yaml_text::block(&member, node.column), node.column),
        };
        changes.push((end..end, new));
    }
    Some(())
}

/// The lines of a member, with the line break before them, if it shares them with nothing.
fn lines_of(text: &str, object: &Node, name: &str) -> Option<Range<usize>> {
    let member = object.get(name)?;
    let before = text.get(object.range.start..member.range.start)?;
    let (at, key) = [format!("{name}:"), format!("\"{name}\":"), format!("'{name}':")]
        .into_iter()
        .filter_map(|key| Some((object.range.start + before.rfind(&key)?, key)))
        .max()?;
    let line = text.get(..at)?.rsplit('\n').next()?;
    let end = end_of_line(text, member.range.end);
    let is_alone = line.chars().all(char::is_whitespace) && line.chars().count() == object.column && at > line.len();
    let is_whole = text.get(end..)?.is_empty() || text.get(end..)?.starts_with(['\n', '\r']);
    (is_alone && is_whole && at + key.len() <= member.range.end).then(|| at - line.len() - 1..end)
}

fn begins_with(text: &str, node: &Node, first: &[char]) -> bool {
    text.get(node.range.clone()).is_some_and(|text| text.starts_with(first))
}

/// The end of the line that `at` is in, if only a comment follows there.
pub(super) fn end_of_line(text: &str, at: usize) -> usize {
    let rest = text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let is_free = rest.trim_start().is_empty() || rest.starts_with([' ', '\t']) && rest.trim_start().starts_with('#');
    if is_free { at + rest.len() } else { at }
}
