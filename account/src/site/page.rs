//! Rendering a page: the common layout, and its HTTP headers.

pub(in crate::site) mod assets;
pub(in crate::site) mod confirm;
pub(in crate::site) mod error;
pub(in crate::site) mod form;
pub(in crate::site) mod labels;
pub(in crate::site) mod notice;
pub(in crate::site) mod viewer;

use askama::Template;
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
};

use self::notice::Notice;

/// The content security policy: our own style sheet and images, forms to this site, and no scripts.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The layout around every page.
#[derive(Debug, Default)]
pub(in crate::site) struct Frame {
    /// The name of the logged-in user.
    pub(in crate::site) username: Option<String>,
    /// A notice about what was just done.
    pub(in crate::site) notice: Option<Notice>,
    /// The requested path.
    pub(in crate::site) path: String,
}

/// A page.
pub(in crate::site) struct Page<T> {
    template: T,
    status: StatusCode,
    form_target: Option<String>,
}

impl Frame {
    /// Whether the page is in the section of the site below this path.
    pub(in crate::site) fn is_in(&self, part: &str) -> bool {
        self.path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The path of the style sheet.
    pub(in crate::site) fn style_path(&self) -> String {
        assets::style_path()
    }

    /// The path of the icon.
    pub(in crate::site) fn icon_path(&self) -> String {
        assets::icon_path()
    }
}

impl<T> Page<T> {
    /// A page with status 200.
    pub(in crate::site) fn new(template: T) -> Self {
        Self { template, status: StatusCode::OK, form_target: None }
    }

    /// Replaces the status.
    pub(in crate::site) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Allows redirects of the page's forms to the origin of `uri`.
    ///
    /// Browsers apply a page's policy to the redirects of its forms too.
    pub(in crate::site) fn leading_to(self, uri: &str) -> Self {
        Self { form_target: origin(uri), ..self }
    }
}

impl<T: Template> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        let html = match self.template.render() {
            Ok(html) => html,
            Err(error) => {
                tracing::error!(%error, "cannot render a page");
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
        };
        let target = self.form_target.as_deref().unwrap_or_default();
        let policy = format!("{POLICY}; form-action 'self' {target}");
        let headers = [
            (
                header::CONTENT_SECURITY_POLICY,
                HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(POLICY)),
            ),
            // The page is for the current user only.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            // Do not send codes and ids to other sites. Forms to this site still send their origin, which is checked.
            (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        (self.status, headers, Html(html)).into_response()
    }
}

/// Redirects to a page with a notice.
pub(in crate::site) fn done(path: &str, what: Notice) -> Redirect {
    Redirect::to(&format!("{path}?done={}", what.name()))
}

/// The part of a URI that a policy can name; `None` if it would allow more than that.
fn origin(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+:".contains(&byte));
    let host = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    match scheme {
        _ if scheme.contains(':') || !plain(scheme) => None,
        "http" | "https" if plain(host) && !host.is_empty() => Some(format!("{scheme}://{host}")),
        // A policy cannot name an IPv6 address, and of an app's URI only the scheme.
        _ => Some(format!("{scheme}:")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_exactly_the_origin_of_a_uri() {
        for (uri, expected) in [
            ("https://app.example.com/callback?x=1", Some("https://app.example.com")),
            ("https://app.example.com:8443", Some("https://app.example.com:8443")),
            ("http://127.0.0.1:4711/callback", Some("http://127.0.0.1:4711")),
            ("http://[::1]:4711/callback", Some("http:")),
            ("ttn://oauth", Some("ttn:")),
            ("com.example.app:/oauth", Some("com.example.app:")),
            ("/oauth/callback/ttnctl", None),
            ("https://a.b; script-src *", Some("https:")),
            ("a; script-src *:x", None),
        ] {
            assert_eq!(origin(uri).as_deref(), expected, "{uri}");
        }
    }
}
