//! The style sheet and icon, which are compiled into the binary.

use axum::{
    Router,
    http::{HeaderName, header},
    routing::get,
};

use crate::Account;

const STYLE: &str = include_str!("../../../../web/site.css");
const ICON: &str = include_str!("../../../../web/icon.svg");
/// The URL of the style sheet changes with its contents, so that browsers can cache it forever.
const STYLE_MARK: u64 = mark(STYLE.as_bytes());
const ICON_MARK: u64 = mark(ICON.as_bytes());
const KEPT: (HeaderName, &str) = (header::CACHE_CONTROL, "public, max-age=31536000, immutable");
const NO_SNIFFING: (HeaderName, &str) = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");

/// The routes of all assets.
pub(crate) fn assets() -> Router<Account> {
    let style = [(header::CONTENT_TYPE, "text/css; charset=utf-8"), KEPT, NO_SNIFFING];
    let icon = [(header::CONTENT_TYPE, "image/svg+xml"), KEPT, NO_SNIFFING];
    Router::new()
        .route("/assets/site.css", get(async move || (style, STYLE)))
        .route("/assets/icon.svg", get(async move || (icon, ICON)))
}

/// Where pages find the style sheet.
pub(in crate::site) fn style_path() -> String {
    format!("/assets/site.css?{STYLE_MARK:016x}")
}

/// Where pages find the picture.
pub(in crate::site) fn icon_path() -> String {
    format!("/assets/icon.svg?{ICON_MARK:016x}")
}

/// FNV-1a, a hash that need not resist attacks here.
const fn mark(bytes: &[u8]) -> u64 {
    let mut mark = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        mark = (mark ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    mark
}
