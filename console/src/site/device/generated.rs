//! Generated values of a device that nobody typed, shown in answer to the form.

use askama::Template;
use types::DevId;

use crate::{
    form::device::Generated,
    site::{
        page::{Frame, Page},
        viewer::InApplication,
    },
};

#[derive(Template)]
#[template(path = "device_generated.html")]
pub(in crate::site) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    dev_id: String,
    generated: Generated,
    done: Done,
}

/// The effect of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::site) enum Done {
    Registered,
    Changed,
    /// It did what it does when it was sent before. This time it changed nothing.
    Before {
        is_new: bool,
    },
}

impl Done {
    fn is_new(self) -> bool {
        matches!(self, Self::Registered | Self::Before { is_new: true })
    }

    fn is_repeat(self) -> bool {
        matches!(self, Self::Before { .. })
    }
}

pub(in crate::site) fn page(request: &InApplication, dev_id: &DevId, generated: Generated, done: Done) -> Page<Show> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Page::new(Show { frame, app_id, tab: "devices", dev_id: dev_id.to_string(), generated, done })
}
