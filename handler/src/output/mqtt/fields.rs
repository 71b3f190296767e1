//! Topics for single fields: `<app_id>/devices/<dev_id>/up/<field>`.

use serde_json::{Map, Value};

/// Calls `each` with the topic and value of every field, an object before its members.
///
/// Skips names that are no valid topic level.
pub(super) fn for_each(above: &str, fields: &Map<String, Value>, each: &mut impl FnMut(String, &Value)) {
    for (name, value) in fields {
        if name.is_empty() || name.contains(['+', '#', '*', '\0']) {
            continue;
        }
        let topic = format!("{above}/{name}");
        each(topic.clone(), value);
        if let Value::Object(inner) = value {
            for_each(&topic, inner, each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_every_field_a_topic_except_those_with_invalid_names() {
        let fields = r##"{"t":21.5,"gps":{"lat":1,"fix":[1,2]},"a+b":1,"":2,"#":3}"##;
        let mut seen = Vec::new();
        for_each("up", &serde_json::from_str(fields).unwrap(), &mut |topic, value| {
            seen.push((topic, value.to_string()));
        });
        let expected =
            [("up/t", "21.5"), ("up/gps", r#"{"lat":1,"fix":[1,2]}"#), ("up/gps/lat", "1"), ("up/gps/fix", "[1,2]")];
        assert_eq!(seen, expected.map(|(topic, value)| (topic.to_owned(), value.to_owned())));
    }
}
