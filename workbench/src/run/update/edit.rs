//! Puts results into a text, and reads it back: a change that would make anything else of the text is refused.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{change::Target, json, yaml};
use crate::{
    codec::compare::settled::Settled,
    text::place::{Expectation, Notation},
};

/// An expectation to replace.
#[derive(Clone, Debug)]
pub(super) struct Update {
    pub(super) line: usize,
    pub(super) expectation: Expectation,
    pub(super) settled: Settled,
}

/// A text with results in it.
#[derive(Debug, Default)]
pub(super) struct Edited {
    pub(super) text: String,
    /// Number of expectations that were replaced.
    pub(super) count: usize,
    /// The lines of examples whose expectation cannot be replaced, and why.
    pub(super) refused: Vec<(usize, String)>,
}

/// Replaces what it can.
pub(super) fn edit(text: &str, updates: &[Update]) -> Edited {
    let mut edited = Edited::default();
    let (of_lines, of_text): (Vec<_>, Vec<_>) =
        updates.iter().partition(|update| update.expectation.notation == Notation::JsonLine);
    match of_lines.is_empty() {
        true => edited.text = edited.replaced(text, &of_text),
        false => edit_lines(text, &of_lines, &mut edited),
    }
    edited
}

/// Each line is a text of its own.
fn edit_lines(text: &str, updates: &[&Update], edited: &mut Edited) {
    let mut by_line: BTreeMap<usize, Vec<&Update>> = BTreeMap::new();
    updates.iter().for_each(|update| by_line.entry(update.line).or_default().push(update));
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let new = by_line.remove(&(index + 1)).map(|updates| edited.replaced(line, &updates));
        edited.text += new.as_deref().unwrap_or(line);
    }
    edited.refused.extend(by_line.into_keys().map(|line| (line, "the line is gone".to_owned())));
}

impl Edited {
    /// `text` with all of `updates`. If that cannot be, it tries halves, until what cannot be is alone.
    fn replaced(&mut self, text: &str, updates: &[&Update]) -> String {
        match (replaced(text, updates), updates) {
            (Ok(new), _) => {
                self.count += updates.len();
                new
            }
            (Err(_), []) => text.to_owned(),
            (Err(reason), [update]) => {
                self.refused.push((update.line, reason));
                text.to_owned()
            }
            (Err(_), _) => {
                let (first, second) = updates.split_at(updates.len() / 2);
                let text = self.replaced(text, first);
                self.replaced(&text, second)
            }
        }
    }
}

fn replaced(text: &str, updates: &[&Update]) -> Result<String, String> {
    let targets: Vec<_> = updates.iter().map(|update| target(update)).collect();
    match updates.first().map(|update| update.expectation.notation) {
        Some(Notation::Yaml) => yaml::replaced(text, &targets),
        Some(_) => json::replaced(text, &targets),
        None => Ok(text.to_owned()),
    }
}

fn target(update: &Update) -> Target<'_> {
    let Expectation { path, hex, .. } = &update.expectation;
    let Settled { mut old, new: mut value } = update.settled.clone();
    if *hex {
        old.as_mut().map(write_hex_bytes);
        write_hex_bytes(&mut value);
    }
    Target { path, old, value }
}

fn write_hex_bytes(value: &mut Value) {
    let Some(bytes) = value.get_mut("bytes") else { return };
    let numbers: Option<Vec<u8>> =
        bytes.as_array().and_then(|bytes| bytes.iter().map(|byte| byte.as_u64()?.try_into().ok()).collect());
    if let Some(numbers) = numbers {
        *bytes = Value::String(hex::encode(numbers));
    }
}
