//! The style sheet and the icon, which are compiled into the program.

use axum::{
    Router,
    http::{HeaderName, header},
    routing::get,
};

use crate::Account;

const STYLE: &str = include_str!("../../../../web/site.css");
const ICON: &str = include_str!("../../../../web/icon.svg");
/// URLs contain a fingerprint of the content, so browsers can cache it permanently.
const STYLE_FINGERPRINT: u64 = fingerprint(STYLE.as_bytes());
const ICON_FINGERPRINT: u64 = fingerprint(ICON.as_bytes());
const IMMUTABLE: (HeaderName, &str) = (header::CACHE_CONTROL, "public, max-age=31536000, immutable");
const NOSNIFF: (HeaderName, &str) = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");

pub(crate) fn assets() -> Router<Account> {
    let style = [(header::CONTENT_TYPE, "text/css; charset=utf-8"), IMMUTABLE, NOSNIFF];
    let icon = [(header::CONTENT_TYPE, "image/svg+xml"), IMMUTABLE, NOSNIFF];
    Router::new()
        .route("/assets/site.css", get(async move || (style, STYLE)))
        .route("/assets/icon.svg", get(async move || (icon, ICON)))
}

pub(in crate::site) fn style_path() -> String {
    format!("/assets/site.css?{STYLE_FINGERPRINT:016x}")
}

pub(in crate::site) fn icon_path() -> String {
    format!("/assets/icon.svg?{ICON_FINGERPRINT:016x}")
}

/// FNV-1a, which is enough to tell versions of a file apart.
const fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}
