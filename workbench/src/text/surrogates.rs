//! Lone UTF-16 surrogates: valid in JavaScript strings and JSON, but not in Rust strings.
//!
//! Between parsing and writing, a lone surrogate is a mark with four digits, and the mark itself is written twice. So
//! different strings stay different.

use std::borrow::Cow;

/// The last character for private use, which no codec is likely to use.
const MARK: char = '\u{10fffd}';
const REPLACEMENT: char = '\u{fffd}';

/// Marks every lone surrogate in `json`, so that it can be parsed.
pub(crate) fn mark(json: &str) -> Cow<'_, str> {
    let mut marked = String::new();
    let mut rest = json;
    while let Some(at) = rest.find(['\\', MARK]) {
        let (before, from) = rest.split_at(at);
        marked.push_str(before);
        let (length, written) = marked_character(from);
        match written {
            Some(written) => marked.push_str(&written),
            None => marked.push_str(&from[..length]),
        }
        rest = &from[length..];
    }
    if marked.is_empty() {
        return Cow::Borrowed(json);
    }
    marked.push_str(rest);
    Cow::Owned(marked)
}

/// The length of the escape or the mark at the beginning of `text`, and what is written in its place, if not itself.
fn marked_character(text: &str) -> (usize, Option<String>) {
    let mark_twice = || Some(format!("{MARK}{MARK}"));
    match (code_unit(text), text.get(6..).and_then(code_unit)) {
        (Some(0xdbff), Some(0xdffd)) => (12, mark_twice()),
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
        (Some(unit @ 0xd800..=0xdfff), _) => (6, Some(format!("{MARK}{unit:04x}"))),
        (Some(_), _) => (6, None),
        (None, _) if text.starts_with(MARK) => (MARK.len_utf8(), mark_twice()),
        // The backslash and the character that it escapes, which may be another backslash.
        (None, _) => (1 + text.chars().nth(1).map_or(0, char::len_utf8), None),
    }
}

/// The JSON of a value that was marked before it was parsed.
pub(crate) fn to_json(value: &impl ToString) -> String {
    unmarked(&value.to_string(), |digits| format!("\\u{digits}"))
}

/// A text of such a value, for where there can be no lone surrogates.
pub(crate) fn to_text(text: &str) -> String {
    unmarked(text, |_| REPLACEMENT.to_string())
}

/// Writes each lone surrogate of a marked text by its digits.
fn unmarked(marked: &str, surrogate: impl Fn(&str) -> String) -> String {
    let mut parts = marked.split(MARK);
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        match part.split_at_checked(4) {
            // Two marks next to each other have nothing in between.
            _ if part.is_empty() => {
                text.push(MARK);
                text.push_str(parts.next().unwrap_or_default());
            }
            Some((digits, rest)) => text.extend([&surrogate(digits), rest]),
            None => text.push_str(part),
        }
    }
    text
}

/// The UTF-16 code unit that `escape` begins with, as in `\ud83d`.
fn code_unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn lone_surrogates_stay_what_they_are() {
        for (json, text) in [
            (r#""a\n""#, "a\n"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ude00\ud83d!""#, "\u{fffd}\u{fffd}!"),
            (r#""\ud83d\n\u0041""#, "\u{fffd}\nA"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\udbff\udffd""#, "\u{10fffd}"),
            ("\"\u{10fffd}d800\"", "\u{10fffd}d800"),
            ("\"\u{10fffd}\\ud800\u{10fffd}\"", "\u{10fffd}\u{fffd}\u{10fffd}"),
        ] {
            let value: Value = serde_json::from_str(&mark(json)).unwrap();
            assert_eq!(to_text(value.as_str().unwrap()), text, "{json}");
            let again: Value = serde_json::from_str(&mark(&to_json(&value))).unwrap();
            assert_eq!(again, value, "{json} becomes {}", to_json(&value));
        }
        assert!(serde_json::from_str::<String>(r#""\ud83d""#).is_err());
        assert_eq!(mark(r#""\é\u12""#), r#""\é\u12""#, "the parser complains about it");
    }

    #[test]
    fn different_strings_stay_different() {
        let strings = [r"\ud800", r"\udfff", r"\ufffd", r"\udbff\udffd", "\u{10fffd}d800", r"\\ud800"];
        let values = strings.map(|string| serde_json::from_str::<Value>(&mark(&format!("\"{string}\""))).unwrap());
        for (number, value) in values.iter().enumerate() {
            assert!(!values[number + 1..].contains(value), "{}", strings[number]);
        }
    }
}
