//! The form of a device, as the pages have it that register one and change one.

use types::{Kind, Kinded};

use crate::{
    Error,
    device::{ABP, Base, Difference, Entry, TICKED, Texts, label},
    site::failure::Problem,
};

/// The fields that a problem can be about, in the order of the form.
const NAMES: [&str; 15] = [
    "dev_id",
    "description",
    "qr",
    "app_eui",
    "dev_eui",
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
    /// What the device was when the form was opened; none if it is new.
    base: Option<Base>,
    pub(in crate::site) problem: Option<Problem>,
    /// What somebody else has changed since then.
    pub(in crate::site) differences: Vec<Difference>,
    /// Whether it was sent when the login had expired or a service was away, and is here again.
    pub(in crate::site) is_draft: bool,
}

impl DeviceForm {
    /// The form of a device that is there.
    pub(in crate::site) fn opened(base: Base) -> Self {
        Self { texts: base.texts.clone(), base: Some(base), ..Self::default() }
    }

    /// The form with what was sent.
    pub(in crate::site) fn sent(entry: &Entry, base: Option<Base>) -> Self {
        Self { texts: entry.texts.clone(), base, ..Self::default() }
    }

    /// The form of a new device.
    pub(in crate::site) fn empty() -> Self {
        let mut texts = Texts::default();
        texts.set("activation", crate::device::OTAA.to_owned());
        texts.set("uses_32_bit_f_cnt", TICKED.to_owned());
        Self { texts, ..Self::default() }
    }

    pub(in crate::site) fn refused(self, error: &Error) -> Self {
        Self { problem: Some(Problem::of(error)), ..self }
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

    /// What comes back with the form; empty for a new device.
    pub(in crate::site) fn base(&self) -> String {
        self.base.as_ref().map(Base::json).unwrap_or_default()
    }

    pub(in crate::site) fn is_new(&self) -> bool {
        self.base.is_none()
    }

    /// Whether the device has a session that another one may replace.
    pub(in crate::site) fn has_session(&self) -> bool {
        self.base.as_ref().is_some_and(|base| base.texts.get("activation") == ABP)
    }

    /// Whether keys were typed that are lost.
    pub(in crate::site) fn is_again(&self) -> bool {
        self.is_draft || self.problem.is_some() || !self.differences.is_empty()
    }

    /// Why this field was refused.
    pub(in crate::site) fn problem_of(&self, name: &str) -> Option<&str> {
        let problem = self.problem.as_ref()?;
        problem.text.contains(&format!("{} not valid", label(name))).then_some(&problem.text)
    }

    /// The field that was refused; empty if it is none of them.
    pub(in crate::site) fn refused_field(&self) -> &'static str {
        NAMES.into_iter().find(|name| self.problem_of(name).is_some()).unwrap_or_default()
    }
}

/// Whether a form is kept as a draft, because nobody knows what became of it, or who sent it.
pub(in crate::site) fn becomes_draft(error: &Error) -> bool {
    matches!(error.kind(), Kind::Unauthenticated | Kind::Unavailable | Kind::Timeout)
}
