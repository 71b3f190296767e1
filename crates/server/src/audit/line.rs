//! Escapes characters that JSON leaves alone, but some readers of lines do not.

use std::{borrow::Cow, fmt::Write};

/// A line of JSON, in which no reader finds another line, or text in another order than it is written in.
///
/// JSON escapes only control characters below U+0020. All others that are escaped here can only be within its strings.
pub(super) fn escaped(line: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(line) else { return Cow::Borrowed(line) };
    match replaced(text, is_escaped) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// A text as people see it on one line: what ends lines, controls terminals or changes the direction of text is escaped
/// as in JSON.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |character| character == '\n' || is_escaped(character))
}

fn replaced(text: &str, is_replaced: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut replaced = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        match is_replaced(character) {
            // Writing to a text does not fail.
            true => _ = write!(replaced, "\\u{:04x}", u32::from(character)),
            false => replaced.push(character),
        }
    }
    Cow::Owned(replaced)
}

/// Returns true for line breaks of Unicode, control characters of terminals, and characters that change the direction
/// of text.
fn is_escaped(character: char) -> bool {
    match character {
        '\n' => false,
        '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        character => character.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_one_line_in_the_order_in_which_it_is_written() {
        assert_eq!(visible("user bob <b>"), "user bob <b>");
        assert_eq!(visible("a\nb\u{1b}[2Jc\u{202e}d\u{2028}"), r"a\u000ab\u001b[2Jc\u202ed\u2028");
        assert_eq!(*escaped(b"a\n"), *b"a\n", "the end of a line of the file stays");
    }
}
