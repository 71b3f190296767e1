//! Links into the playground, which carry functions and uplinks in their fragment as `web/playground/link.js` has it.

use api::{handler::Application, history::Record};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use types::{HexBytes, Timestamp};

use crate::Console;

/// The version of the notation.
const VERSION: &str = "1.";
/// Payload formats that say which dialect the functions have. Otherwise, the page detects it.
const DIALECTS: [&str; 3] = ["ts013", "v2", "chirpstack3"];
/// Compression level. Higher ones take longer, and gain little.
const LEVEL: u8 = 6;

/// The link that opens these functions with these uplinks, of which the first is shown; none if there are no functions.
pub(crate) fn link(functions: &Application, uplinks: &[Record]) -> Option<String> {
    let source = source(functions);
    if source.is_empty() {
        return None;
    }
    let state = state(&source, &functions.payload_format, uplinks).to_string();
    let packed = miniz_oxide::deflate::compress_to_vec(state.as_bytes(), LEVEL);
    Some(format!("{}/#{VERSION}{}", Console::PLAYGROUND, URL_SAFE_NO_PAD.encode(packed)))
}

/// The functions as one source, as the playground has it. TS013 has all functions in one, which people set twice.
fn source(functions: &Application) -> String {
    let Application { decoder, converter, validator, encoder, .. } = functions;
    let mut sources = Vec::new();
    for source in [decoder, converter, validator, encoder] {
        if !source.trim().is_empty() && !sources.contains(&source.as_str()) {
            sources.push(source.as_str());
        }
    }
    sources.join("\n\n")
}

fn state(source: &str, payload_format: &str, uplinks: &[Record]) -> Value {
    let dialect = DIALECTS.into_iter().find(|dialect| *dialect == payload_format).unwrap_or_default();
    let mut state = json!({"text": source, "dialect": dialect});
    if uplinks.is_empty() {
        return state;
    }
    let line = |uplink: &Record| format!("{}: {}", uplink.port, HexBytes(uplink.payload.clone()));
    let lines: Vec<_> = uplinks.iter().map(line).collect();
    state["notation"] = json!("hex");
    state["payloads"] = json!(lines.join("\n"));
    state["selected"] = json!(0);
    // The page has one time for all messages.
    if let [uplink] = uplinks {
        state["time"] = json!(Timestamp::from_nanos(uplink.time).to_rfc3339());
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_each_source_once_with_the_uplinks() {
        let code = |text: &str| text.to_owned();
        let functions = Application {
            payload_format: code("v2"),
            decoder: code("decode"),
            validator: code("validate"),
            encoder: code("decode"),
            ..Application::default()
        };
        let uplink = Record { port: 7, payload: vec![1, 255], ..Record::default() };
        let state = |uplinks: &[Record]| -> Value {
            let link = link(&functions, uplinks).unwrap();
            let packed = link.strip_prefix("/console/playground/#1.").unwrap();
            let text = miniz_oxide::inflate::decompress_to_vec(&URL_SAFE_NO_PAD.decode(packed).unwrap()).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        assert_eq!(state(&[]), json!({"text": "decode\n\nvalidate", "dialect": "v2"}));
        let one = state(std::slice::from_ref(&uplink));
        assert_eq!((&one["text"], &one["dialect"]), (&json!("decode\n\nvalidate"), &json!("v2")));
        assert_eq!((&one["payloads"], &one["time"]), (&json!("7: 01FF"), &json!("1970-01-01T00:00:00Z")));
        let two = state(&[uplink, Record { port: 8, ..Record::default() }]);
        assert_eq!((&two["payloads"], &two["time"]), (&json!("7: 01FF\n8: "), &Value::Null));
    }

    #[test]
    fn without_functions_there_is_nothing_to_open() {
        let functions = Application { payload_format: "cayennelpp".to_owned(), ..Application::default() };
        assert_eq!(link(&functions, &[Record::default()]), None);
    }
}
