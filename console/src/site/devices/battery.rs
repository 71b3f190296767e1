//! The battery of a device, if the fields of an uplink say something of it.

use serde_json::{Map, Value};

use crate::site::page::short;

/// The names that decoders give the battery, in small letters and digits, with its unit.
const NAMES: [(&str, &str); 15] = [
    ("battery", ""),
    ("batterylevel", ""),
    ("batterypercent", " %"),
    ("batterypercentage", " %"),
    ("batterypct", " %"),
    ("batteryvoltage", " V"),
    ("batteryv", " V"),
    ("batv", " V"),
    ("battv", " V"),
    ("vbat", " V"),
    ("vbatt", " V"),
    ("batterymv", " mV"),
    ("batmv", " mV"),
    ("bat", ""),
    ("batt", ""),
];

/// The battery in a JSON object of fields, with its unit if its name has one.
pub(super) fn battery(fields: &str) -> Option<String> {
    // Most uplinks have none, so that they are not parsed.
    if !fields.to_ascii_lowercase().contains("bat") {
        return None;
    }
    let fields: Map<String, Value> = serde_json::from_str(fields).ok()?;
    NAMES.into_iter().find_map(|(name, unit)| {
        let (_, value) = fields.iter().find(|(field, _)| plain(field) == name)?;
        match value {
            Value::Number(number) => Some(format!("{number}{unit}")),
            Value::String(text) => Some(short(text)),
            _ => None,
        }
    })
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_battery_is_found_under_the_names_that_decoders_use() {
        for (fields, expected) in [
            (r#"{"temperature": 20.5, "battery": 87}"#, Some("87")),
            (r#"{"BatV": 3.6}"#, Some("3.6 V")),
            (r#"{"battery_percent": 90}"#, Some("90 %")),
            (r#"{"Battery_Voltage": 3.05}"#, Some("3.05 V")),
            (r#"{"bat": "low"}"#, Some("low")),
            (r#"{"battery": {"volts": 3}, "batV": 3}"#, Some("3 V")),
            (r#"{"bath": 1, "battery": null}"#, None),
            (r#"["battery"]"#, None),
            ("", None),
        ] {
            assert_eq!(battery(fields).as_deref(), expected, "{fields}");
        }
    }
}
