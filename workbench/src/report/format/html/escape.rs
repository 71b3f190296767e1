//! Text as it can stand in HTML and XML.

use runtime::sanitize;

/// Text as it can stand in a page.
pub(crate) fn text(text: &str) -> String {
    escape(&sanitize(text))
}

/// Text of several lines.
pub(crate) fn lines(text_of: &str) -> String {
    text_of.lines().map(text).collect::<Vec<_>>().join("\n")
}

/// `text` with the characters escaped that mean something in HTML and XML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}
