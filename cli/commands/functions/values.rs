//! Reads the values of options.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use client::HexBytes;
use types::Timestamp;

pub(super) fn base64(text: &str) -> Result<HexBytes, String> {
    STANDARD.decode(text.trim()).map(HexBytes).map_err(|error| format!("not Base64: {error}"))
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number = number.filter(|number: &f64| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a percentage is a number from 0 to 100, as in 85%".to_owned())
}

pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "a time has a date, a time and a zone, as in 2026-01-01T00:00:00Z".to_owned())
}
