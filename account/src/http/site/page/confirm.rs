//! Asks for confirmation before something is deleted.

use askama::Template;

use super::Frame;

/// A confirmation page whose form is posted to its own path.
#[derive(Template)]
#[template(path = "confirm.html")]
pub(in crate::http::site) struct ConfirmPage {
    pub(in crate::http::site) frame: Frame,
    pub(in crate::http::site) title: String,
    pub(in crate::http::site) text: &'static str,
    pub(in crate::http::site) button: &'static str,
    pub(in crate::http::site) back: String,
}
