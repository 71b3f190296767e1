//! "Are you sure?", before something is taken away.

use askama::Template;

use super::page::Frame;

/// A question whose form goes back to the path that asked it.
#[derive(Template)]
#[template(path = "question.html")]
pub(super) struct Question {
    pub(super) frame: Frame,
    pub(super) title: String,
    /// What happens then.
    pub(super) text: &'static str,
    /// What the button says.
    pub(super) button: &'static str,
    /// Where to go instead.
    pub(super) back: String,
}
