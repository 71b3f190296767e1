//! The form of the functions page.

use api::handler::Application;

use super::live;
use crate::{
    Error, Result,
    site::viewer::{InApplication, Sent},
};

/// The payload formats, with their names for people.
const FORMATS: [(&str, &str); 5] = [
    ("custom", "Functions, dialect detected"),
    ("ts013", "Functions for TS013"),
    ("v2", "Functions for The Things Network v2"),
    ("chirpstack3", "Functions for ChirpStack 3"),
    ("cayennelpp", "Cayenne LPP"),
];
/// The numbers of rows between which a field has as many as its source.
const ROWS_MIN: usize = 8;
const ROWS_MAX: usize = 20;
/// The share that the form proposes, in percent.
const SHARE: &str = "5";

/// The form, with what was entered.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionsForm {
    /// The version that it began with.
    pub(super) base: u32,
    pub(super) functions: Application,
    pub(super) note: String,
    /// The device on whose messages functions are tried; empty for all.
    pub(super) device: String,
    /// The share of the devices that is to have the functions first, in percent.
    pub(super) share: String,
}

impl FunctionsForm {
    /// A new form, with the functions that are live.
    pub(super) async fn live(request: &InApplication) -> Result<Self> {
        let live = live(request, &request.handler().await?).await?;
        let functions = live.functions.unwrap_or_default();
        Ok(Self { base: live.number, functions, share: SHARE.to_owned(), ..Self::default() })
    }

    pub(super) fn of(request: &InApplication, sent: &Sent) -> Self {
        // Browsers send each line end with two characters.
        let text = |name: &str| sent.value(name).replace("\r\n", "\n");
        let trimmed = |name: &str| sent.value(name).trim().to_owned();
        let functions = Application {
            app_id: request.app_id().to_string(),
            payload_format: sent.value("payload_format").to_owned(),
            decoder: text("decoder"),
            converter: text("converter"),
            validator: text("validator"),
            encoder: text("encoder"),
            register_on_join_access_key: String::new(),
        };
        let base = sent.value("base").parse().unwrap_or_default();
        Self { base, functions, note: trimmed("note"), device: trimmed("device"), share: trimmed("share") }
    }

    pub(super) fn formats(&self) -> [(&'static str, &'static str); 5] {
        FORMATS
    }

    /// The rows of the field of a source. The editor grows beyond them.
    pub(super) fn rows(&self, source: &str) -> usize {
        (source.lines().count() + 1).clamp(ROWS_MIN, ROWS_MAX)
    }

    /// Name, label, source and purpose of each function.
    pub(super) fn sources(&self) -> [(&'static str, &'static str, &str, &'static str); 4] {
        let Application { decoder, converter, validator, encoder, .. } = &self.functions;
        [
            ("decoder", "Decoder", decoder, "Turns the bytes of an uplink into fields."),
            ("converter", "Converter", converter, "Changes the fields that the decoder returns."),
            ("validator", "Validator", validator, "Decides whether the message is published."),
            ("encoder", "Encoder", encoder, "Turns the fields of a downlink into bytes."),
        ]
    }
}

/// The name of a payload format for people; its own if it is unknown.
pub(super) fn format_name(format: &str) -> &str {
    FORMATS.into_iter().find(|(known, _)| *known == format).map_or(format, |(_, name)| name)
}

/// A percentage that somebody has typed, with its sign or without.
pub(super) fn percent(what: &'static str, text: &str) -> Result<f64> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let must = || "must be a percentage, such as 5 or 0.5".to_owned();
    number.filter(|number: &f64| number.is_finite()).ok_or_else(|| Error::Invalid { what, must: must() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_has_the_name_that_the_form_shows() {
        assert_eq!(format_name("custom"), "Functions, dialect detected");
        assert_eq!(format_name("of tomorrow"), "of tomorrow");
    }

    #[test]
    fn a_field_is_as_long_as_its_source() {
        let rows = |lines: usize| FunctionsForm::default().rows(&"x\n".repeat(lines));
        assert_eq!([0, 7, 11, 19, 300].map(rows), [8, 8, 12, 20, 20]);
    }

    #[test]
    fn a_share_is_typed_with_its_sign_or_without() {
        assert_eq!(percent("share", "5").unwrap(), 5.0);
        assert_eq!(percent("share", "0.5 %").unwrap(), 0.5);
        for text in ["", "five", "inf", "5,5", "%"] {
            let error = percent("share", text).unwrap_err();
            assert!(error.to_string().starts_with("share not valid"), "{text:?}: {error}");
        }
    }
}
