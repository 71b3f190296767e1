//! Reads the values of options, and the files that they name.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use client::HexBytes;
use serde_json::value::RawValue;
use types::Timestamp;
use workbench::{BadInput, is_stdin, read_script};

/// The text of a file, or of standard input.
pub(in crate::commands::functions) fn text(file: &Path) -> Result<String, BadInput> {
    read_script(file).map_err(|source| BadInput::File { file: name(file), source })
}

/// A file in messages.
pub(in crate::commands::functions) fn name(file: &Path) -> String {
    if is_stdin(file) { "standard input".to_owned() } else { file.display().to_string() }
}

/// The variables in a file, as a member of the functions' input.
pub(in crate::commands) fn variables(file: &Path) -> Result<String, BadInput> {
    let text = text(file)?;
    let object: Option<&RawValue> =
        serde_json::from_str(&text).ok().filter(|value: &&RawValue| value.get().starts_with('{'));
    let reason = || format!("{} must have a JSON object, as in {{\"offset\": \"5\"}}", name(file));
    object.map(variables_of).ok_or_else(|| BadInput::Request(reason()))
}

/// The member of the functions' input that has these variables.
pub(in crate::commands::functions) fn variables_of(object: &RawValue) -> String {
    format!(r#"{{"variables":{object}}}"#)
}

pub(in crate::commands::functions) fn base64(text: &str) -> Result<HexBytes, String> {
    STANDARD
        .decode(text.trim())
        .map(HexBytes)
        .map_err(|_| "Base64 has letters, digits, `+`, `/` and `=` at its end, as in CVw=".to_owned())
}

pub(in crate::commands::functions) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number = number.filter(|number: &f64| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a percentage is a number from 0 to 100, as in 85%".to_owned())
}

pub(in crate::commands::functions) fn port(text: &str) -> Result<u8, String> {
    text.trim().parse().map_err(|_| "a port is a number from 0 to 255".to_owned())
}

pub(in crate::commands::functions) fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "a time has a date, a time and a zone, as in 2026-01-01T00:00:00Z".to_owned())
}
