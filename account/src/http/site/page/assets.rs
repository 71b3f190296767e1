//! The style sheet and the icon, which are compiled into the program.

use axum::{Router, routing::get};
use server::site::Asset;

use crate::Account;

const STYLE: Asset =
    Asset::new("/assets/site.css", "text/css; charset=utf-8", include_str!("../../../../../web/site.css"));
const ICON: Asset = Asset::new("/assets/icon.svg", "image/svg+xml", include_str!("../../../../../web/icon.svg"));

pub(crate) fn assets() -> Router<Account> {
    [STYLE, ICON].into_iter().fold(Router::new(), |router, asset| router.route(asset.path(), get(async move || asset)))
}

pub(in crate::http::site) fn style_path() -> String {
    STYLE.link()
}

pub(in crate::http::site) fn icon_path() -> String {
    ICON.link()
}
