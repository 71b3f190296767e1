//! Descriptions of problems in JSON, in words for its author.

use serde_json::error::Category;

/// Beginnings of the parser's messages, with our words for them.
const SYNTAX: &[(&str, &str)] = &[
    ("expected value", "no JSON value begins here"),
    ("expected ident", "a word that is neither true, false nor null"),
    ("expected `:`", "after a name comes a colon"),
    ("expected `,` or `}`", "a comma or a closing brace is missing"),
    ("expected `,` or `]`", "a comma or a closing bracket is missing"),
    ("trailing comma", "a comma stands before the end of an object or a list"),
    ("trailing characters", "something follows the end of the value"),
    ("key must be a string", "a name must be in double quotes"),
    (
        "control character",
        "a string has a line break, a tab or another control character: write it as \\n, \\t or \\u0000",
    ),
    ("invalid escape", "a string has an unknown character after a backslash"),
    ("invalid number", "a number is not written as in JSON"),
    ("number out of range", "a number is too large"),
    ("recursion limit exceeded", "it is nested too deeply"),
];

/// Describes the problem in `json`, with the column, from 1, where that is known. The line is in the error.
pub fn json_problem(error: &serde_json::Error, json: &str) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let problem = match error.classify() {
        Category::Eof if json.trim().is_empty() => return "it is empty".to_owned(),
        Category::Eof => return "it ends too early: something that was begun is not complete".to_owned(),
        Category::Data => data(text),
        Category::Syntax | Category::Io => {
            let known = SYNTAX.iter().find(|(found, _)| text.starts_with(found));
            known.map_or(text, |(_, said)| said).to_owned()
        }
    };
    match column(error, json) {
        0 => problem,
        column => format!("{problem} (column {column})"),
    }
}

/// The parser counts bytes, an editor characters.
fn column(error: &serde_json::Error, json: &str) -> usize {
    let line = json.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    line.char_indices().take_while(|(start, _)| *start < error.column()).count()
}

/// Valid JSON, but not what is expected.
fn data(text: &str) -> String {
    if let Some(unknown) = text.strip_prefix("unknown variant ") {
        return unknown.replacen(", expected one of ", " is none of ", 1).replacen(", expected ", " is not ", 1);
    }
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("{name} is missing");
    }
    if let Some(name) = text.strip_prefix("duplicate field ") {
        return format!("{name} is there twice");
    }
    let text = text.replacen("invalid type: ", "found ", 1).replacen("invalid value: ", "found ", 1);
    let words = [
        ("found sequence", "found a list"),
        ("found map", "found an object"),
        ("found integer ", "found the number "),
        ("found floating point ", "found the number "),
        ("found string ", "found the text "),
        ("found boolean ", "found "),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
        ("expected a codec", "expected an object"),
        ("expected u8", "expected a number from 0 to 255"),
    ];
    words.iter().fold(text, |text, (found, said)| text.replacen(found, said, 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;

    use super::*;

    fn problem<T: DeserializeOwned>(text: &str) -> String {
        json_problem(&serde_json::from_str::<T>(text).err().unwrap(), text)
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (text, said) in [
            (" ", "it is empty"),
            ("{", "it ends too early: something that was begun is not complete"),
            ("tru", "it ends too early: something that was begun is not complete"),
            ("{\"a\" 1}", "after a name comes a colon (column 6)"),
            ("{\"a\": 1 \"b\"}", "a comma or a closing brace is missing (column 9)"),
            ("[1 2]", "a comma or a closing bracket is missing (column 4)"),
            ("{\"a\": 1,}", "a comma stands before the end of an object or a list (column 9)"),
            ("{a: 1}", "a name must be in double quotes (column 2)"),
            ("nope", "a word that is neither true, false nor null (column 2)"),
            ("{\"ä\": x}", "no JSON value begins here (column 7)"),
            ("{\"ä\": ö}", "no JSON value begins here (column 7)"),
            ("{} x", "something follows the end of the value (column 4)"),
            (
                "\"a\tb\"",
                "a string has a line break, a tab or another control character: write it as \\n, \\t or \\u0000 (column 3)",
            ),
        ] {
            assert_eq!(problem::<serde_json::Value>(text), said, "{text}");
        }
    }

    #[test]
    fn says_what_is_expected() {
        assert_eq!(problem::<Vec<u8>>("[256]"), "found the number `256`, expected a number from 0 to 255 (column 4)");
        assert_eq!(problem::<Vec<u8>>("{}"), "found an object, expected a list");
        assert_eq!(problem::<BTreeMap<String, u8>>("[]"), "found a list, expected an object");
        assert_eq!(problem::<String>("1"), "found the number `1`, expected a string (column 1)");
    }
}
