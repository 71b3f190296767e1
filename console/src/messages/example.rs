//! An uplink as an example for `airlock functions test`, in the layout of files beside their source.

use std::fmt::Write as _;

use api::{history::Record, version::Version};
use serde_json::{Value, json};
use server::audit::visible;
use types::{HexBytes, Timestamp};

/// Maximum length of the comment with a failure, in characters.
const FAILURE_CHARS_MAX: usize = 200;

/// A file with the uplink as its example; none if no decoder is known. An uplink that failed may have any result that is
/// no fault.
pub(crate) fn text(version: &Version, uplink: &Record) -> Option<String> {
    let functions = version.functions.as_ref()?;
    if uplink.kind != "up" || functions.decoder.trim().is_empty() {
        return None;
    }
    let time = Timestamp::from_nanos(uplink.time).to_rfc3339();
    let description = json!(format!("{}, {time}", uplink.dev_id));
    let mut text = String::new();
    // Writing to a string cannot fail. JSON is YAML.
    if !version.dialect.is_empty() {
        _ = writeln!(text, "dialect: {}", version.dialect);
    }
    _ = writeln!(text, "examples:\n  - description: {description}\n    port: {}", uplink.port);
    _ = writeln!(text, "    bytes: \"{}\"\n    time: \"{time}\"", HexBytes(uplink.payload.clone()));
    if let Some(variables) = variables(&uplink.extra) {
        _ = writeln!(text, "    variables: {variables}");
    }
    _ = writeln!(text, "    {}", expected(&version.dialect, !functions.converter.trim().is_empty(), uplink));
    Some(text)
}

/// The variables among the additional input of the decoder.
fn variables(extra: &str) -> Option<Value> {
    serde_json::from_str::<Value>(extra).ok()?.get("variables").cloned()
}

/// The line with what is expected of the decoder.
fn expected(dialect: &str, has_converter: bool, uplink: &Record) -> String {
    let fields = on_one_line(&uplink.fields);
    match uplink.outcome.as_str() {
        "failed" => {
            let failure = on_one_line(&uplink.failure).chars().take(FAILURE_CHARS_MAX).collect::<String>();
            format!("outcome: valid # it failed: {failure}")
        }
        _ if fields.is_empty() || dialect.is_empty() => {
            "# the test shows the result, which is not known here".to_owned()
        }
        _ if has_converter => "# the test shows the result, which the converter has changed here".to_owned(),
        _ if dialect != "ts013" => format!("output: {fields}"),
        _ if uplink.warnings.is_empty() => format!("output: {{\"data\": {fields}}}"),
        _ => format!("output: {{\"data\": {fields}, \"warnings\": {}}}", json!(uplink.warnings)),
    }
}

/// JSON stays the same: it can have the characters that change the direction of text in its strings only.
fn on_one_line(text: &str) -> String {
    visible(&text.replace(char::is_control, " ")).into_owned()
}

#[cfg(test)]
mod tests {
    use api::handler::Application;

    use super::*;

    fn last_line(dialect: &str, converter: &str, uplink: &Record) -> String {
        let functions = Application { decoder: "d".into(), converter: converter.into(), ..Application::default() };
        let version = Version { functions: Some(functions), dialect: dialect.into(), ..Version::default() };
        text(&version, uplink).unwrap().lines().last().unwrap().trim().to_owned()
    }

    #[test]
    fn what_is_expected_is_what_the_decoder_returned() {
        let uplink = Record { kind: "up".into(), fields: "{\"a\":1}".into(), ..Record::default() };
        assert_eq!(last_line("v2", "", &uplink), "output: {\"a\":1}");
        assert_eq!(last_line("ts013", "", &uplink), "output: {\"data\": {\"a\":1}}");
        let turned = Record { fields: "{\"a\":\"\u{202e}\"}".into(), ..uplink.clone() };
        assert_eq!(last_line("v2", "", &turned), r#"output: {"a":"\u202e"}"#);
        assert!(last_line("v2", "c", &uplink).starts_with("# the test shows"));
        let warned = Record { warnings: vec!["late".into()], ..uplink.clone() };
        assert_eq!(last_line("ts013", "", &warned), "output: {\"data\": {\"a\":1}, \"warnings\": [\"late\"]}");
        let failed = Record { outcome: "failed".into(), failure: "it\nfailed".into(), ..uplink };
        assert_eq!(last_line("v2", "", &failed), "outcome: valid # it failed: it failed");
    }

    #[test]
    fn there_is_no_example_without_a_decoder_or_for_an_event() {
        let version = Version { functions: Some(Application::default()), ..Version::default() };
        assert_eq!(text(&version, &Record { kind: "up".into(), ..Record::default() }), None);
        let functions = Application { decoder: "d".into(), ..Application::default() };
        let version = Version { functions: Some(functions), ..Version::default() };
        assert_eq!(text(&version, &Record { kind: "down/sent".into(), ..Record::default() }), None);
    }
}
