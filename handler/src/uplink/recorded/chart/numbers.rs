//! The numbers in the fields of an uplink, with their paths.

use serde_json::Value;

/// Maximum length of a path, in bytes. Longer ones are left out.
const PATH_BYTES_MAX: usize = 200;
/// Maximum number of numbers looked at in an uplink.
const NUMBERS_MAX: usize = 1000;

/// Numbers by path, such as `temperature` or `battery.volts`. Lists are left out, because their members have no names.
pub(super) fn numbers(fields: &str) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_str(fields) {
        collect(&value, "", &mut found);
    }
    found
}

/// serde_json bounds the depth.
fn collect(value: &Value, path: &str, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(number) if !path.is_empty() => {
            found.extend(number.as_f64().filter(|number| number.is_finite()).map(|number| (path.to_owned(), number)));
        }
        Value::Object(members) => {
            for (name, member) in members {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if below.len() <= PATH_BYTES_MAX && found.len() < NUMBERS_MAX {
                    collect(member, &below, found);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_path() {
        let fields = r#"{"a": 1, "b": {"c": -2.5, "d": "3"}, "e": [4], "f": true, "g": null}"#;
        assert_eq!(numbers(fields), [("a".to_owned(), 1.0), ("b.c".to_owned(), -2.5)]);
        for none in ["", "7", "[1]", "{", "{}"] {
            assert_eq!(numbers(none), [], "{none}");
        }
        let long = format!(r#"{{"{}": 1}}"#, "x".repeat(PATH_BYTES_MAX + 1));
        assert_eq!(numbers(&long), []);
    }
}
