//! Reports for programs: a line of JSON for each codec, and one for the totals.

use runtime::escape_json;
use serde::Serialize;

use crate::{
    layout::BadInput,
    report::{CodecReport, reporter::Reporter, totals::Totals},
};

pub(super) struct Json;

impl Reporter for Json {
    fn codec(&mut self, report: &CodecReport) -> String {
        escaped(report) + "\n"
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        end(totals, problems)
    }
}

/// The last line, with its line break.
pub(crate) fn end(totals: &impl Serialize, problems: &[BadInput]) -> String {
    escaped(&End { totals, problems: problems.iter().map(Problem::of).collect() }) + "\n"
}

/// The last line.
#[derive(Serialize)]
struct End<'a, T> {
    #[serde(flatten)]
    totals: &'a T,
    problems: Vec<Problem<'a>>,
}

/// A file or line that could not be read.
#[derive(Serialize)]
struct Problem<'a> {
    file: Option<&'a str>,
    line: Option<u64>,
    reason: String,
}

impl<'a> Problem<'a> {
    fn of(problem: &'a BadInput) -> Self {
        let (file, line) = problem.place().unzip();
        Self { file, line, reason: problem.reason() }
    }
}

/// `value` as JSON in one line, with control characters and the like escaped.
pub(crate) fn escaped(value: &impl Serialize) -> String {
    // A report has no maps with other keys than text, so it can always be written.
    escape_json(&serde_json::to_string(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_control_characters_only() {
        for (text, expected) in [
            ("21.5 °C, 温度 👍 \\u202e", r#""21.5 °C, 温度 👍 \\u202e""#),
            ("a\u{9b}2J\u{202e}\u{7f}\u{ad}", r#""a\u009b2J\u202e\u007f\u00ad""#),
            ("\u{e0100}\u{1b}\n\t", r#""\udb40\udd00\u001b\n\t""#),
        ] {
            let shown = escaped(&text);
            assert_eq!(shown, expected);
            assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }
}
