//! The source line where a function failed, with a caret under the column.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use crate::contract::failure::Failure;
use crate::contract::sanitize::sanitize_char;
use crate::contract::sources::Sources;

/// Characters of a line that are shown; minified sources have lines of many thousands.
const WIDTH_CHARS: usize = 100;
/// Characters shown before the column, if the line is truncated.
const BEFORE_CHARS: usize = 60;

impl Failure {
    /// The line where the function failed and, on a second line, a caret under the column. `None` if the line is
    /// unknown.
    ///
    /// `sources` are those that failed. Control characters are replaced, so the result is safe to print on a terminal.
    pub fn excerpt(&self, sources: &Sources) -> Option<String> {
        let line = self.line?;
        let text = lines(sources.text(self.slot)).nth(line.checked_sub(1)? as usize)?;
        let window = Window::around(text, self.column);
        let gutter = line.to_string();
        let mut excerpt = format!("{gutter} | {}", window.text);
        if let Some(caret) = window.caret {
            // Writing to a string cannot fail.
            _ = write!(excerpt, "\n{:>1$} |{2:3$}^", "", gutter.len(), "", caret + 1);
        }
        Some(excerpt)
    }
}

/// The lines as QuickJS counts them; a carriage return alone also ends a line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// Returns the number of whole characters in the first UTF-16 units of `line`.
fn characters(line: &str, units: usize) -> usize {
    let ends = line.chars().scan(0, |end, character| {
        *end += character.len_utf16();
        Some(*end)
    });
    ends.take_while(|end| *end <= units).count()
}

/// The part of a line that is shown.
struct Window {
    text: String,
    /// Terminal columns before the caret; a character may take two, or none.
    caret: Option<usize>,
}

impl Window {
    /// The part of `line` around `column`, from 1, in UTF-16 units.
    fn around(line: &str, column: Option<u32>) -> Self {
        let line = line.trim_end();
        let length = line.chars().count();
        let caret = column.and_then(|column| column.checked_sub(1)).map(|units| characters(line, units as usize));
        let last_start = length.saturating_sub(WIDTH_CHARS);
        let start = caret.unwrap_or(0).saturating_sub(BEFORE_CHARS).min(last_start);
        let start = if length > WIDTH_CHARS { start } else { 0 };
        let shown =
            |from: usize, count: usize| -> String { line.chars().skip(from).take(count).map(sanitize_char).collect() };
        let (left, right) = (if start > 0 { "…" } else { "" }, if start + WIDTH_CHARS < length { "…" } else { "" });
        let text = format!("{left}{}{right}", shown(start, WIDTH_CHARS));
        let caret = caret.map(|index| left.width() + shown(start, index - start).width());
        Self { text, caret }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::wire::{FailureKind, Slot};

    fn excerpt(text: &str, line: Option<u32>, column: Option<u32>) -> Option<String> {
        let failure = Failure { line, column, ..Failure::new(Slot::Converter, FailureKind::Thrown, "no") };
        failure.excerpt(&Sources { converter: text.to_owned(), ..Sources::default() })
    }

    #[test]
    fn the_caret_is_under_the_column() {
        let text = "function Converter() {\n\treturn nothing;\r\n}";
        assert_eq!(excerpt(text, Some(2), Some(9)).unwrap(), "2 |  return nothing;\n  |         ^");
        assert_eq!(excerpt(text, Some(3), Some(1)).unwrap(), "3 | }\n  | ^");
        for text in ["a;\rb;\rno;\rd;", "a;\r\nb;\r\nno;\r\n", "a;\n\rno;\r", "\r\r\nno;"] {
            let line = text.replace("\r\n", "\n").split(['\r', '\n']).position(|line| line == "no;").unwrap();
            assert_eq!(excerpt(text, Some(line as u32 + 1), None).unwrap(), format!("{} | no;", line + 1), "{text:?}");
        }
        let far = "\n".repeat(99) + "é∑x";
        assert_eq!(excerpt(&far, Some(100), Some(3)).unwrap(), "100 | é∑x\n    |   ^");
    }

    #[test]
    fn the_caret_accounts_for_character_widths() {
        for (text, column, width) in [
            ("温度!", 3, 4),
            ("温度!", 2, 2),
            ("👍!", 3, 2),
            ("o\u{308}!", 3, 1),
            ("a\u{fe0f}!", 3, 2),
            ("\u{3164}!", 2, 1),
        ] {
            let caret = excerpt(text, Some(1), Some(column)).unwrap().split_once('\n').unwrap().1.to_owned();
            assert_eq!(caret, format!("  | {}^", " ".repeat(width)), "{text} {column}");
        }
        let far = excerpt(&"温".repeat(1000), Some(1), Some(501)).unwrap();
        assert!(far.ends_with(&format!("  | {}^", " ".repeat(1 + 2 * BEFORE_CHARS))), "{far}");
    }

    #[test]
    fn a_column_beyond_the_line_points_at_its_end() {
        assert_eq!(excerpt("abc", Some(1), Some(99)).unwrap(), "1 | abc\n  |    ^");
    }

    #[test]
    fn without_a_column_there_is_no_caret_and_without_a_line_no_excerpt() {
        assert_eq!(excerpt("abc", Some(1), None).unwrap(), "1 | abc");
        for line in [None, Some(0), Some(2), Some(u32::MAX)] {
            assert_eq!(excerpt("abc", line, Some(1)), None);
        }
    }

    #[test]
    fn a_long_line_is_truncated_around_the_column() {
        let text: String = (0..1000).map(|index| if index == 500 { '!' } else { '.' }).collect();
        for (column, cut) in [(1, (false, true)), (501, (true, true)), (1000, (true, false))] {
            let excerpt = excerpt(&text, Some(1), Some(column)).unwrap();
            let (line, caret) = excerpt.split_once('\n').unwrap();
            assert!(line.chars().count() <= 100 + 6, "{excerpt}");
            assert_eq!((line.contains(" …"), line.ends_with('…')), cut, "{excerpt}");
            let under = line.chars().nth(caret.chars().count() - 1);
            assert_eq!(under, Some(if column == 501 { '!' } else { '.' }), "{excerpt}");
        }
    }

    #[test]
    fn terminal_control_characters_are_replaced() {
        let excerpt = excerpt("a\u{1b}[2Jb\u{202e}c\u{7}", Some(1), Some(8)).unwrap();
        assert_eq!(excerpt, "1 | a\u{fffd}[2Jb\u{fffd}c\u{fffd}\n  |        ^");
    }
}
