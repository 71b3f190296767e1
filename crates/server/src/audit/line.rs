//! Escapes characters that JSON leaves alone, but some readers of lines do not.

use std::{borrow::Cow, fmt::Write};

/// A line of JSON, in which no reader finds another line, or text in another order than it is written in.
///
/// JSON escapes only control characters below U+0020. All others that are escaped here can only be within its strings.
pub(super) fn escaped(line: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(line) else { return Cow::Borrowed(line) };
    if !text.contains(is_escaped) {
        return Cow::Borrowed(line);
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        match is_escaped(character) {
            // Writing to a text does not fail.
            true => _ = write!(escaped, "\\u{:04x}", u32::from(character)),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped.into_bytes())
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
