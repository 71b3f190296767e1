//! The home page.

use askama::Template;

use super::page::{Frame, Page, viewer::MaybeViewer};

/// The page that shows a code for v2's command line.
const ACCESS_CODE: &str = "/users/authorize?client_id=ttnctl&redirect_uri=/oauth/callback/ttnctl&response_type=code";

#[derive(Template)]
#[template(path = "home.html")]
pub(super) struct Home {
    frame: Frame,
    access_code: &'static str,
}

pub(super) async fn show(viewer: MaybeViewer) -> Page<Home> {
    Page::new(Home { frame: viewer.frame(), access_code: ACCESS_CODE })
}
