//! JavaScript text may hold halves of UTF-16 pairs, which JSON can write and Rust cannot hold.

use std::borrow::Cow;

/// `json` with every half of a pair replaced by the replacement character.
pub(super) fn mended(json: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => 0,
            (Some(_), _) => 6,
            // The backslash and what it stands before, which may be another one.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        mended.push_str(before);
        mended.push_str(if length == 0 { "\\ufffd" } else { &escape[..length] });
        rest = &escape[if length == 0 { 6 } else { length }..];
    }
    if mended.is_empty() {
        return Cow::Borrowed(json);
    }
    mended.push_str(rest);
    Cow::Owned(mended)
}

/// The unit of UTF-16 that `escape` begins with, as in `\ud83d`.
fn unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_are_not() {
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
            assert_eq!(mended(json), expected);
        }
        assert!(serde_json::from_str::<String>(r#""\ud83d""#).is_err());
    }
}
