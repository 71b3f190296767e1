//! The form of a device, as the pages have it that register one and change one.

use types::{Kind, Kinded};

use crate::{
    Error,
    form::device::{ABP, Base, DeviceEntry, Difference, Draw, TICKED, Texts, label},
    site::failure::Problem,
};

/// The fields that a problem can be about, in the order of the form.
const NAMES: [&str; 16] = [
    "dev_id",
    "description",
    "qr",
    "app_eui",
    "dev_eui",
    "activation",
    "app_key",
    "dev_addr",
    "nwk_s_key",
    "app_s_key",
    "f_cnt_up",
    "f_cnt_down",
    "latitude",
    "longitude",
    "altitude",
    "attributes",
];

/// The form, with what was entered. Keys are not in it.
#[derive(Clone, Debug, Default)]
pub(in crate::site) struct DeviceForm {
    texts: Texts,
    /// The device as it was when the form was opened; none if it is new.
    base: Option<Base>,
    /// Of the random values.
    draw: Draw,
    pub(in crate::site) problem: Option<Problem>,
    /// The field that the problem is about; empty if it is about none of them.
    refused_field: &'static str,
    /// Changes by somebody else since then.
    pub(in crate::site) differences: Vec<Difference>,
    /// True if it was sent when the login had expired or a service was away, and is here again.
    pub(in crate::site) is_draft: bool,
}

impl DeviceForm {
    /// The form of a device that is there.
    pub(in crate::site) fn opened(base: Base, draw: Draw) -> Self {
        Self { texts: base.texts.clone(), base: Some(base), draw, ..Self::default() }
    }

    /// The form with what was sent.
    pub(in crate::site) fn sent(entry: &DeviceEntry, base: Option<Base>, draw: Draw) -> Self {
        Self { texts: entry.texts.clone(), base, draw, ..Self::default() }
    }

    /// The form of a new device.
    pub(in crate::site) fn empty(draw: Draw) -> Self {
        let mut texts = Texts::default();
        texts.set("activation", crate::form::device::OTAA.to_owned());
        texts.set("uses_32_bit_f_cnt", TICKED.to_owned());
        Self { texts, draw, ..Self::default() }
    }

    pub(in crate::site) fn refused(self, error: &Error) -> Self {
        Self { problem: Some(Problem::of(error)), refused_field: field_of(error), ..self }
    }

    /// The form as it is back after a login, or when a service is back.
    pub(in crate::site) fn drafted(self) -> Self {
        Self { is_draft: true, ..self }
    }

    pub(in crate::site) fn differing(self, differences: Vec<Difference>) -> Self {
        Self { differences, ..self }
    }

    pub(in crate::site) fn text(&self, name: &str) -> &str {
        self.texts.get(name)
    }

    pub(in crate::site) fn is(&self, name: &str, text: &str) -> bool {
        self.texts.get(name) == text
    }

    pub(in crate::site) fn label(&self, name: &str) -> &'static str {
        label(name)
    }

    /// The base that comes back with the form; empty for a new device.
    pub(in crate::site) fn base(&self) -> String {
        self.base.as_ref().map(Base::json).unwrap_or_default()
    }

    pub(in crate::site) fn draw(&self) -> &str {
        self.draw.as_str()
    }

    pub(in crate::site) fn is_new(&self) -> bool {
        self.base.is_none()
    }

    /// Returns true if the device has a session that another one may replace.
    pub(in crate::site) fn has_session(&self) -> bool {
        self.base.as_ref().is_some_and(|base| base.texts.get("activation") == ABP)
    }

    /// Returns true if keys were typed that are lost.
    pub(in crate::site) fn is_again(&self) -> bool {
        self.is_draft || self.problem.is_some() || !self.differences.is_empty()
    }

    /// The reason why this field was refused.
    pub(in crate::site) fn problem_of(&self, name: &str) -> Option<&str> {
        self.problem.as_ref().filter(|_| self.refused_field == name).map(|problem| problem.text.as_str())
    }

    /// The field that was refused; empty if it is none of them.
    pub(in crate::site) fn refused_field(&self) -> &'static str {
        self.refused_field
    }
}

/// The field that an error is about; empty if it is about none of them.
fn field_of(error: &Error) -> &'static str {
    match error {
        Error::Invalid { what, .. } => named(what),
        Error::DeviceExists(_) | Error::DeviceDeleted(_) => "dev_id",
        Error::Service(error) => field_of_handler(error.kind(), &error.to_string()),
        _ => "",
    }
}

/// The field that the handler refuses, which only the text of its error says.
fn field_of_handler(kind: Kind, text: &str) -> &'static str {
    let begins = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    match (kind, text.split_once(" not valid: ")) {
        (Kind::Invalid, Some(("Location", rule))) if rule.contains("altitude") => "altitude",
        (Kind::Invalid, Some(("Location", _))) => "latitude",
        (Kind::Invalid, Some((what, _))) => named(what),
        (Kind::AlreadyExists, _) if begins("Registration template") => "app_eui",
        // As another device has both EUIs, or the network server knows them.
        (Kind::AlreadyExists, _) if begins("Device with AppEUI") || begins("Network broker") => "dev_eui",
        (Kind::AlreadyExists, _) if begins("Device ") => "dev_id",
        _ => "",
    }
}

/// The field with this name for people.
fn named(what: &str) -> &'static str {
    NAMES.into_iter().find(|name| label(name) == what).unwrap_or_default()
}

/// Returns true if a form is kept as a draft, because nobody knows what became of it, or who sent it.
pub(in crate::site) fn becomes_draft(error: &Error) -> bool {
    matches!(error.kind(), Kind::Unauthenticated | Kind::Unavailable | Kind::Timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_handler_refuses_is_shown_at_its_field() {
        let taken = "Device with AppEUI and DevEUI 0102030405060708 already exists";
        let refused = "network broker `ns` did not change the device: its network server refused it";
        for (kind, text, field) in [
            (Kind::Invalid, "Description not valid: at most 1 bytes are allowed", "description"),
            (Kind::Invalid, "Attributes not valid: at most 5 of your own are allowed", "attributes"),
            (Kind::Invalid, "Location not valid: a latitude is -90 to 90", "latitude"),
            (Kind::Invalid, "Location not valid: an altitude is -12,000 to 40,000,000 metres", "altitude"),
            (Kind::Invalid, "Device not valid: lorawan_device is missing", ""),
            (Kind::AlreadyExists, taken, "dev_eui"),
            (Kind::AlreadyExists, refused, "dev_eui"),
            (Kind::Denied, refused, ""),
            (Kind::AlreadyExists, "Registration template with AppEUI 01 already exists", "app_eui"),
            (Kind::AlreadyExists, "Device alice-app:dev-1 already exists", "dev_id"),
            (Kind::Unavailable, "Description not valid: it is away", ""),
        ] {
            assert_eq!(field_of_handler(kind, text), field, "{text}");
        }
        assert_eq!(field_of(&Error::DeviceExists("dev-1".parse().unwrap())), "dev_id");
        assert_eq!(field_of(&Error::Invalid { what: "Activation", must: String::new() }), "activation");
    }
}
