//! Parts of records as the JSON that records have, the same for all who record.

use serde_json::json;

/// Writes warnings; empty if there are none.
pub fn warnings_text(warnings: &[&String]) -> String {
    if warnings.is_empty() { String::new() } else { json!(warnings).to_string() }
}

/// Writes console output, each entry as its function and its arguments; empty if there is none.
pub fn logs_text<'a>(entries: impl Iterator<Item = (&'a str, &'a [String])>) -> String {
    let entries: Vec<_> = entries.map(|(function, fields)| json!({ "function": function, "fields": fields })).collect();
    if entries.is_empty() { String::new() } else { json!(entries).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_arrays_unless_they_would_be_empty() {
        assert_eq!((warnings_text(&[]), logs_text([].into_iter())), (String::new(), String::new()));
        let (warning, fields) = ("a \"b\"".to_owned(), ["1".to_owned(), "\"x\"".to_owned()]);
        assert_eq!(warnings_text(&[&warning]), r#"["a \"b\""]"#);
        let logs = logs_text([("decoder", &fields[..])].into_iter());
        assert_eq!(logs, r#"[{"function":"decoder","fields":["1","\"x\""]}]"#);
    }
}
