//! Lone UTF-16 surrogates: valid in JavaScript strings and JSON, but not in Rust strings.

use std::borrow::Cow;

/// Replaces every escaped lone surrogate in `json` by U+FFFD.
pub(super) fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut replaced = String::new();
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let length = match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => 0,
            (Some(_), _) => 6,
            // The backslash and the character that it escapes, which may be another backslash.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        replaced.push_str(before);
        replaced.push_str(if length == 0 { "\\ufffd" } else { &escape[..length] });
        rest = &escape[if length == 0 { 6 } else { length }..];
    }
    if replaced.is_empty() {
        return Cow::Borrowed(json);
    }
    replaced.push_str(rest);
    Cow::Owned(replaced)
}

/// The UTF-16 code unit that `escape` begins with, as in `\ud83d`.
fn code_unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_lone_surrogates_and_keeps_pairs() {
        for (json, expected) in [
            (r#""a\n""#, r#""a\n""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\ude00\ud83d!""#, r#""\ufffd\ufffd!""#),
            (r#""\ud83d\n\u0041""#, r#""\ufffd\n\u0041""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\é\u12""#, r#""\é\u12""#),
            ("", ""),
        ] {
            assert_eq!(replace_lone_surrogates(json), expected);
        }
        assert!(serde_json::from_str::<String>(r#""\ud83d""#).is_err());
    }
}
