//! Changes a text of JSON, or of JavaScript that looks like it.

use std::ops::Range;

use serde_json::Value;

use super::{
    change::{Change, NOT_THE_SAME, Target, apply, with},
    items::{self, Style},
    members::Members,
};
use crate::{
    codec::compare::differences,
    text::{
        place::Step,
        span::{self, Item},
        surrogates::{mark, to_json},
    },
};

/// `text` with `targets`, if it then means what it should: only what differs is written, or else the whole values.
pub(super) fn replaced(text: &str, targets: &[Target<'_>]) -> Result<String, String> {
    written(text, targets).or_else(|_| {
        let whole: Vec<_> = targets.iter().map(Target::whole).collect();
        written(text, &whole)
    })
}

fn written(text: &str, targets: &[Target<'_>]) -> Result<String, String> {
    let mut changes = Vec::new();
    for target in targets {
        change(text, target, &mut changes)?;
    }
    let new = apply(text, changes)?;
    let is_right = match serde_json::from_str(&mark(without_mark(text))) {
        Ok(root) => with(root, targets).is_some_and(|expected| reads_as(&new, &expected)),
        // Nothing here evaluates JavaScript, so only the values themselves are compared.
        Err(_) => targets
            .iter()
            .all(|target| span::find(&new, target.path).is_some_and(|range| says(&new, &range, &target.value))),
    };
    if is_right { Ok(new) } else { Err(NOT_THE_SAME.to_owned()) }
}

fn reads_as(text: &str, expected: &Value) -> bool {
    let read = serde_json::from_str::<Value>(&mark(without_mark(text)));
    read.is_ok_and(|read| differences(expected, &read, false).is_empty())
}

/// The same for JavaScript with comments and literals that JSON does not have.
fn says(text: &str, range: &Range<usize>, expected: &Value) -> bool {
    let item_says = |item: &Item, value| says(text, &item.value, value);
    match (expected, span::items(text, range)) {
        (Value::Object(members), Some(items)) => {
            let value = |item: &Item| members.get(item.name.as_deref()?);
            items.len() == members.len()
                && items.iter().all(|item| value(item).is_some_and(|value| item_says(item, value)))
        }
        (Value::Array(values), Some(items)) => {
            items.len() == values.len() && items.iter().zip(values).all(|(item, value)| item_says(item, value))
        }
        (expected, _) => literal(text.get(range.clone()).unwrap_or_default())
            .is_some_and(|read| differences(expected, &read, false).is_empty()),
    }
}

/// A literal of JSON, a hexadecimal number, or a text in single quotes.
fn literal(text: &str) -> Option<Value> {
    let hexadecimal = || text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let quoted = || text.strip_prefix('\'')?.strip_suffix('\'').filter(|text| !text.contains(['\\', '\'']));
    let read = serde_json::from_str(&mark(text)).ok();
    read.or_else(|| hexadecimal().map(Value::from)).or_else(|| quoted().map(Value::from))
}

fn without_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

fn change(text: &str, Target { path, old, value }: &Target<'_>, changes: &mut Vec<Change>) -> Result<(), String> {
    if let Some(range) = span::find(text, path) {
        push(text, &range, old.as_ref(), value, changes);
        return Ok(());
    }
    let (Some(Step::Name(name)), Some(outer)) = (path.last(), path.split_last().map(|(_, outer)| outer)) else {
        return Err("the example is gone".to_owned());
    };
    let (end, is_empty) = span::last_member(text, outer).ok_or("the example is no plain object")?;
    let comma = if is_empty { "" } else { "," };
    changes.push((end..end, format!("{comma} \"{name}\": {}", to_json(value))));
    Ok(())
}

/// Replaces what differs in the value at `range`.
fn push(text: &str, range: &Range<usize>, old: Option<&Value>, new: &Value, changes: &mut Vec<Change>) {
    if old.is_some_and(|old| to_json(old) == to_json(new)) {
        return;
    }
    if old.and_then(|old| push_within(text, range, old, new, changes)).is_none() {
        changes.push((range.clone(), like(text, range, new)));
    }
}

/// The same for what is inside of it; none if the value has to be written as a whole.
fn push_within(text: &str, range: &Range<usize>, old: &Value, new: &Value, changes: &mut Vec<Change>) -> Option<()> {
    let items = span::items(text, range)?;
    let style = Style::of(text, range, &items);
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let names: Vec<&str> = items.iter().map(|item| item.name.as_deref()).collect::<Option<_>>()?;
            let is_known = names.len() == old.len() && names.iter().all(|name| old.contains_key(*name));
            let members = is_known.then(|| Members::new(names.into_iter(), new))??;
            let is_kept = |item: &Item| item.name.as_deref().is_some_and(|name| new.contains_key(name));
            for item in items.iter().filter(|item| is_kept(item)) {
                let name = item.name.as_deref()?;
                push(text, &item.value, old.get(name), new.get(name)?, changes);
            }
            let added = members.added.iter().map(|(name, value)| style.member(name, value)).collect::<Vec<_>>();
            items::change(text, &items, is_kept, &style.joined(&added), changes);
        }
        (Value::Array(old), Value::Array(new)) if items.len() == old.len() && !old.is_empty() && !new.is_empty() => {
            for ((item, old), new) in items.iter().zip(old).zip(new) {
                push(text, &item.value, Some(old), new, changes);
            }
            let last = items.get(new.len().min(items.len()) - 1)?.start;
            let added = new.iter().skip(old.len()).map(|value| style.element(value)).collect::<Vec<_>>();
            items::change(text, &items, |item| item.start <= last, &style.joined(&added), changes);
        }
        _ => return None,
    }
    Some(())
}

/// The value in lines, if what stood there was.
fn like(text: &str, range: &Range<usize>, value: &Value) -> String {
    if text.get(range.clone()).is_none_or(|old| !old.contains('\n')) {
        return to_json(value);
    }
    let line = text.get(..range.start).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    let indent: String = line.chars().take_while(|character| character.is_whitespace()).collect();
    items::pretty(value, &indent)
}
