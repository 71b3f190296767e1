//! Scalars of YAML: where they end, and what they mean.

use saphyr_parser::ScalarStyle;
use serde_json::{Number, Value};

/// Returns the written text of a scalar: the parser's also has what is between it and the next token.
pub(super) fn written(text: &str, style: ScalarStyle) -> &str {
    let quote = match style {
        ScalarStyle::SingleQuoted => '\'',
        ScalarStyle::DoubleQuoted => '"',
        _ => return text.trim_end(),
    };
    let mut characters = text.char_indices().skip_while(|(_, character)| *character != quote).skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        let is_doubled = quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == quote);
        match character {
            '\\' if quote == '"' => _ = characters.next(),
            _ if character == quote && is_doubled => _ = characters.next(),
            _ if character == quote => return &text[..=at],
            _ => {}
        }
    }
    text.trim_end()
}

/// Returns the value of a scalar in the core schema of YAML 1.2. `NaN` and infinity become null, as in JSON.
pub(super) fn value(text: &str, style: ScalarStyle, is_text: bool) -> Value {
    if is_text || style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" | ".nan" | ".NaN" | ".NAN" => Value::Null,
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = |prefix, radix| text.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok());
    if let Some(number) = digits("0x", 16).or_else(|| digits("0o", 8)) {
        return Some(number.into());
    }
    let is_plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    if !text.bytes().all(is_plain) || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match text.parse::<i64>() {
        Ok(number) => Some(number.into()),
        Err(_) => text.parse().ok().and_then(Number::from_f64).map(Value::Number),
    }
}
