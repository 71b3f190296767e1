//! The site that caused a request.
//!
//! A browser sends cookies with requests that any site causes. So requests that change something must come from the site
//! itself, according to `Sec-Fetch-Site` or `Origin`, which other sites cannot forge.

use axum::http::{HeaderMap, header};

const FETCH_SITE: &str = "sec-fetch-site";

/// The site that caused a request, according to its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The site itself.
    SameSite,
    /// Another one.
    CrossSite,
    /// The headers do not say: it comes from a program, or an old browser.
    Unknown,
}

/// Returns the site that caused the request with these headers; `own` is the origin of this one.
pub fn origin(headers: &HeaderMap, own: &str) -> Origin {
    let single = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let first = values.next()?;
        // Repeated headers count as cross-site.
        Some(if values.next().is_some() { "" } else { first.to_str().unwrap_or_default() })
    };
    match (single(FETCH_SITE), single(header::ORIGIN.as_str())) {
        (Some("same-origin"), _) => Origin::SameSite,
        (Some(_), _) => Origin::CrossSite,
        (None, Some(sent)) if sent == own => Origin::SameSite,
        (None, Some(_)) => Origin::CrossSite,
        (None, None) => Origin::Unknown,
    }
}
