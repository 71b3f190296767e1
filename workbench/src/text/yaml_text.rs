//! Writes JSON values as YAML.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::surrogates::to_json;

/// `value` in one line.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{}: {}", scalar(name), flow(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// `value` in lines that begin at `column`, the first of which has been indented already.
pub(crate) fn block(value: &Value, column: usize) -> String {
    let mut text = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => push_members(&mut text, members, column),
        Value::Array(values) if !values.is_empty() => push_elements(&mut text, values, column),
        other => text += &flow(other),
    }
    text
}

fn push_members(text: &mut String, members: &Map<String, Value>, column: usize) {
    let inner = column + 2;
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            _ = write!(text, "\n{:column$}", "");
        }
        _ = match is_short(value) {
            true => write!(text, "{}: {}", scalar(name), flow(value)),
            false => write!(text, "{}:\n{:inner$}{}", scalar(name), "", block(value, inner)),
        };
    }
}

fn push_elements(text: &mut String, values: &[Value], column: usize) {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            _ = write!(text, "\n{:column$}", "");
        }
        _ = write!(text, "- {}", block(value, column + 2));
    }
}

/// Returns true if a value is written in one line: a scalar, or a list of them.
fn is_short(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(values) => !values.iter().any(|value| value.is_object() || value.is_array()),
        _ => true,
    }
}

/// A text, without quotes if it cannot be mistaken for anything else.
fn scalar(text: &str) -> String {
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let lower = text.to_ascii_lowercase();
    let means_more = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&lower.as_str());
    if is_word && !means_more { text.to_owned() } else { to_json(&Value::String(text.to_owned())) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::yaml;

    #[test]
    fn what_is_written_reads_the_same() {
        let value = json!({
            "a b": "no", "c": [1, -2.5e300, "x"], "d": [], "e": {}, "f": [{"g": [[1], {"h": null}]}, "21.5 °C: #1"],
            "i": {"j": {"k": "line\nbreak", "l": "0x10", "true": true}},
        });
        assert_eq!(yaml::parse(&flow(&value)).unwrap().value(), value);
        for column in [0, 4] {
            let text = format!("{:column$}{}", "", block(&value, column));
            assert_eq!(yaml::parse(&text).unwrap().value(), value, "{text}");
        }
    }
}
