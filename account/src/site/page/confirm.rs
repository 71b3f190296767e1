//! Confirmation pages before something is deleted.

use askama::Template;

use super::Frame;

/// A confirmation page, whose form posts to its own path.
#[derive(Template)]
#[template(path = "confirm.html")]
pub(in crate::site) struct ConfirmPage {
    pub(in crate::site) frame: Frame,
    pub(in crate::site) title: String,
    /// What happens then.
    pub(in crate::site) text: &'static str,
    /// What the button says.
    pub(in crate::site) button: &'static str,
    /// Where to go instead.
    pub(in crate::site) back: String,
}
