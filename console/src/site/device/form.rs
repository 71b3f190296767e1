//! The forms of the page: a new downlink, and an uplink as if the device had sent it.

use types::HexBytes;

use crate::{
    Error, Result,
    site::{failure::Problem, viewer::Sent},
};

/// Both forms, with what was entered.
#[derive(Clone, Debug, Default)]
pub(in crate::site) struct Forms {
    pub(in crate::site) downlink: DownlinkForm,
    pub(in crate::site) uplink: UplinkForm,
    /// The reason why one of them was refused.
    pub(in crate::site) problem: Option<Problem>,
    /// The id of the first field of the refused form; empty for none.
    pub(in crate::site) refused_field: &'static str,
}

/// A new downlink.
#[derive(Clone, Debug, Default)]
pub(in crate::site) struct DownlinkForm {
    pub(in crate::site) payload: String,
    pub(in crate::site) port: String,
    pub(in crate::site) confirmed: bool,
    pub(in crate::site) by_fields: bool,
    pub(in crate::site) schedule: String,
    /// True if the form is a draft that was sent when the login had expired or a service was away.
    pub(in crate::site) is_draft: bool,
}

/// An uplink that no device sent.
#[derive(Clone, Debug, Default)]
pub(in crate::site) struct UplinkForm {
    pub(in crate::site) payload: String,
    pub(in crate::site) port: String,
    /// True if the form is a draft that was sent when the login had expired or a service was away.
    pub(in crate::site) is_draft: bool,
}

impl Forms {
    pub(in crate::site) fn refused_field(&self) -> &'static str {
        self.refused_field
    }
}

impl DownlinkForm {
    pub(in crate::site) fn of(sent: &Sent) -> Self {
        Self {
            payload: sent.value("payload").to_owned(),
            port: sent.value("port").trim().to_owned(),
            confirmed: !sent.value("confirmed").is_empty(),
            by_fields: sent.value("form") == "fields",
            schedule: sent.value("schedule").to_owned(),
            is_draft: false,
        }
    }
}

impl UplinkForm {
    pub(in crate::site) fn of(sent: &Sent) -> Self {
        let (payload, port) = (sent.value("payload").to_owned(), sent.value("port").trim().to_owned());
        Self { payload, port, is_draft: false }
    }
}

/// The bytes of a payload, in hexadecimal with or without spaces.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>> {
    let plain: String = text.split_whitespace().collect();
    let bytes: HexBytes =
        plain.parse().map_err(|_| invalid("payload", "must be bytes in hexadecimal, such as 01FF"))?;
    if bytes.0.is_empty() { Err(invalid("payload", "must have at least one byte")) } else { Ok(bytes.0) }
}

pub(super) fn invalid(what: &'static str, must: &str) -> Error {
    Error::Invalid { what, must: must.to_owned() }
}
