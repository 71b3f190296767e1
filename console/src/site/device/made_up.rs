//! What was made up for a device because nobody typed it, shown once.

use askama::Template;

use crate::{
    device::MadeUp,
    site::{
        page::{Frame, Page},
        viewer::InApplication,
    },
};

#[derive(Template)]
#[template(path = "device_made_up.html")]
pub(in crate::site) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    dev_id: String,
    made_up: MadeUp,
    /// Whether the device is.
    is_new: bool,
}

pub(in crate::site) fn page(request: &InApplication, dev_id: String, made_up: MadeUp, is_new: bool) -> Page<Show> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Page::new(Show { frame, app_id, tab: "devices", dev_id, made_up, is_new })
}
