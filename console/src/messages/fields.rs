//! Fields of messages as they are shown on one line.

/// Compact JSON with a space after each comma between values, where lines may break; other text as it is.
pub(crate) fn spaced(text: &str) -> String {
    if !text.starts_with(['{', '[']) {
        return text.to_owned();
    }
    let mut spaced = String::with_capacity(text.len());
    let (mut is_in_string, mut is_escaped) = (false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        spaced.push(character);
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_in_string,
            '"' => is_in_string = !is_in_string,
            ',' if !is_in_string && characters.peek().is_none_or(|next| !next.is_whitespace()) => spaced.push(' '),
            _ => {}
        }
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_break_between_values_and_strings_stay() {
        assert_eq!(spaced(r#"{"a":1,"b":[2,3],"c":"x,y\",z"}"#), r#"{"a":1, "b":[2, 3], "c":"x,y\",z"}"#);
        assert_eq!(spaced(r#"["\\",1, 2,"cut,"#), r#"["\\", 1, 2, "cut,"#);
        assert_eq!(spaced("the decoder failed (line 1,2)"), "the decoder failed (line 1,2)");
    }
}
