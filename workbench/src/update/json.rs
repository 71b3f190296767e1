//! Changes a text of JSON, or of JavaScript that looks like it.

use std::ops::Range;

use serde_json::Value;

use super::change::{Change, NOT_THE_SAME, Target, apply, with};
use crate::{
    compare::differences,
    place::Step,
    span,
    surrogates::{mark, to_json},
};

/// `text` with `targets`, if it then means what it should.
pub(super) fn replaced(text: &str, targets: &[Target<'_>]) -> Result<String, String> {
    let changes = targets.iter().map(|target| change(text, target)).collect::<Result<_, _>>()?;
    let new = apply(text, changes)?;
    let is_right = match serde_json::from_str(&mark(without_mark(text))) {
        Ok(root) => with(root, targets).is_some_and(|expected| reads_as(&new, &expected)),
        // Nothing here evaluates JavaScript, so only the values themselves are compared.
        Err(_) => targets.iter().all(|target| {
            let found = span::find(&new, target.path).and_then(|range| new.get(range));
            found.is_some_and(|text| reads_as(text, &target.value))
        }),
    };
    if is_right { Ok(new) } else { Err(NOT_THE_SAME.to_owned()) }
}

fn reads_as(text: &str, expected: &Value) -> bool {
    let read = serde_json::from_str::<Value>(&mark(without_mark(text)));
    read.is_ok_and(|read| differences(expected, &read, false).is_empty())
}

fn without_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

fn change(text: &str, Target { path, value }: &Target<'_>) -> Result<Change, String> {
    if let Some(range) = span::find(text, path) {
        let new = like(text, &range, value);
        return Ok((range, new));
    }
    let (Some(Step::Name(name)), Some(outer)) = (path.last(), path.split_last().map(|(_, outer)| outer)) else {
        return Err("the example is gone".to_owned());
    };
    let (end, is_empty) = span::last_member(text, outer).ok_or("the example is no plain object")?;
    let comma = if is_empty { "" } else { "," };
    Ok((end..end, format!("{comma} \"{name}\": {}", to_json(value))))
}

/// The value in lines, if what stood there was.
fn like(text: &str, range: &Range<usize>, value: &Value) -> String {
    if text.get(range.clone()).is_none_or(|old| !old.contains('\n')) {
        return to_json(value);
    }
    let line = text.get(..range.start).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    let indent: String = line.chars().take_while(|character| character.is_whitespace()).collect();
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    pretty.lines().map(|line| to_json(&line)).collect::<Vec<_>>().join(&format!("\n{indent}"))
}
