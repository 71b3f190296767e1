//! Takes members and elements out of a text of JSON, and puts others behind them, laid out as those that are there.

use std::ops::Range;

use serde_json::Value;

use super::change::Change;
use crate::text::{span::Item, surrogates::to_json};

/// Layout of the members or elements of a value.
pub(super) struct Style {
    /// Whitespace at the start of each line, if each has a line of its own.
    indent: Option<String>,
    /// True if nothing is between a comma or colon and what follows.
    is_compact: bool,
}

impl Style {
    pub(super) fn of(text: &str, range: &Range<usize>, items: &[Item]) -> Self {
        let text_of = |range: Range<usize>| text.get(range).unwrap_or_default();
        let before = items.last().map(|last| line_start(text, last.start)).unwrap_or_default();
        let is_compact = !text_of(range.clone()).contains(|character: char| character.is_whitespace());
        let is_alone = before.contains('\n') || before.trim().is_empty() && text_of(range.clone()).contains('\n');
        Self { indent: (is_alone && before.trim().is_empty()).then(|| before.to_owned()), is_compact }
    }

    pub(super) fn member(&self, name: &str, value: &Value) -> String {
        let colon = if self.is_compact { ":" } else { ": " };
        format!("{}{colon}{}", to_json(&Value::from(name)), self.element(value))
    }

    pub(super) fn element(&self, value: &Value) -> String {
        self.indent.as_ref().map_or_else(|| to_json(value), |indent| pretty(value, indent))
    }

    /// Returns the text to put behind the last one that stays.
    pub(super) fn joined(&self, added: &[String]) -> String {
        let before = match (&self.indent, self.is_compact) {
            (Some(indent), _) => format!(",\n{indent}"),
            (None, true) => ",".to_owned(),
            (None, false) => ", ".to_owned(),
        };
        added.iter().map(|item| format!("{before}{item}")).collect()
    }
}

/// `value` in lines, all but the first of which begin with `indent`.
pub(super) fn pretty(value: &Value, indent: &str) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    pretty.lines().map(|line| to_json(&line)).collect::<Vec<_>>().join(&format!("\n{indent}"))
}

/// Takes out the items that are not kept, and puts `added` behind the last one that is.
pub(super) fn change(
    text: &str,
    items: &[Item],
    is_kept: impl Fn(&Item) -> bool,
    added: &str,
    changes: &mut Vec<Change>,
) {
    let Some(last) = items.iter().rposition(&is_kept) else { return };
    for (index, item) in items.iter().enumerate() {
        match item.comma {
            // The comma behind the last one goes with those that followed it.
            Some(comma) if index == last && last + 1 < items.len() => changes.push((comma..comma + 1, String::new())),
            _ if is_kept(item) => {}
            Some(comma) => changes.push((with_blanks(text, item.start..comma + 1), String::new())),
            None => changes.push((with_blanks(text, item.start..item.value.end), String::new())),
        }
        if index == last && !added.is_empty() {
            changes.push((item.value.end..item.value.end, added.to_owned()));
        }
    }
}

/// The whole line, if nothing else is in it; otherwise with the blanks before it.
fn with_blanks(text: &str, range: Range<usize>) -> Range<usize> {
    let before = line_start(text, range.start);
    let line = text.get(range.end..).and_then(|rest| rest.split('\n').next()).unwrap_or_default();
    let start = range.start - (before.len() - before.trim_end().len());
    match (before.trim().is_empty(), line.trim().is_empty()) {
        // With the line break before it.
        (true, true) => start.saturating_sub(1)..range.end + line.len(),
        _ => start..range.end,
    }
}

/// Returns the text before a place in its line.
fn line_start(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default()
}
