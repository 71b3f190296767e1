//! Asks for confirmation before something is deleted.

use askama::Template;

use super::Frame;

/// A confirmation page whose form is posted to its own path.
#[derive(Template)]
#[template(path = "confirm.html")]
pub(in crate::site) struct ConfirmPage {
    pub(in crate::site) frame: Frame,
    pub(in crate::site) title: String,
    pub(in crate::site) text: &'static str,
    pub(in crate::site) button: &'static str,
    pub(in crate::site) back: String,
}
