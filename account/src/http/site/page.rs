//! The layout that all pages share, and their HTTP headers.

pub(in crate::http::site) mod assets;
pub(in crate::http::site) mod confirm;
pub(in crate::http::site) mod error;
pub(in crate::http::site) mod form;
pub(in crate::http::site) mod labels;
pub(in crate::http::site) mod notice;
pub(in crate::http::site) mod viewer;

use askama::Template;
use axum::{
    http::{HeaderValue, StatusCode},
    response::{IntoResponse, Redirect, Response},
};
use server::status::{self, ErrorChain};
use types::Kind;

use self::notice::Notice;

/// Pages load only our own styles and pictures, run no scripts, and submit forms to this site.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The pages with the list of applications: the console's, or else our own.
pub(in crate::http::site) const CONSOLE: &str = "/console";
pub(in crate::http::site) const APPLICATIONS: &str = "/my/applications";
/// The page of the console that creates the first application of a user who has the cookie for it.
pub(in crate::http::site) const FIRST_APPLICATION: &str = "/console/first-application";

/// Parameters of the layout.
#[derive(Debug, Default)]
pub(in crate::http::site) struct Frame {
    /// The viewer's name, if they are logged in.
    pub(in crate::http::site) username: Option<String>,
    /// A message about what was just done.
    pub(in crate::http::site) notice: Option<Notice>,
    pub(in crate::http::site) path: String,
    /// True if the console is part of the site.
    pub(in crate::http::site) has_console: bool,
    /// True if the viewer sees the console's pages for operators.
    pub(in crate::http::site) is_operator: bool,
}

pub(in crate::http::site) struct Page<T> {
    template: T,
    status: StatusCode,
    form_target: Option<String>,
}

impl Frame {
    /// Returns true if the page is in the section of the site with this path.
    pub(in crate::http::site) fn is_in(&self, part: &str) -> bool {
        self.path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the path of the list of applications.
    pub(in crate::http::site) fn applications_path(&self) -> &'static str {
        if self.has_console { CONSOLE } else { APPLICATIONS }
    }

    pub(in crate::http::site) fn style_path(&self) -> String {
        assets::style_path()
    }

    pub(in crate::http::site) fn icon_path(&self) -> String {
        assets::icon_path()
    }
}

impl<T> Page<T> {
    pub(in crate::http::site) fn new(template: T) -> Self {
        Self { template, status: StatusCode::OK, form_target: None }
    }

    pub(in crate::http::site) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Allows the page's forms to redirect to the origin of `uri`.
    ///
    /// Browsers apply a page's policy to redirects after its forms are submitted, too.
    pub(in crate::http::site) fn leading_to(self, uri: &str) -> Self {
        Self { form_target: origin(uri), ..self }
    }
}

impl<T: Template> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        let html = match self.template.render() {
            Ok(html) => html,
            Err(error) => {
                tracing::error!(error = %ErrorChain(&error), "cannot render a page");
                return status::http(Kind::Internal).into_response();
            }
        };
        let target = self.form_target.as_deref().unwrap_or_default();
        let policy = format!("{POLICY}; form-action 'self' {target}");
        let policy = HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(POLICY));
        server::site::page(self.status, policy, html)
    }
}

/// Redirects to a page that confirms what was just done.
pub(in crate::http::site) fn done(path: &str, what: Notice) -> Redirect {
    Redirect::to(&format!("{path}?done={}", what.name()))
}

/// The origin of a URI as a CSP source; `None` if it could be read as anything else.
fn origin(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+:".contains(&byte));
    let host = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    match scheme {
        _ if scheme.contains(':') || !plain(scheme) => None,
        "http" | "https" if plain(host) && !host.is_empty() => Some(format!("{scheme}://{host}")),
        // CSP cannot express IPv6 addresses, and only the scheme of an app's URI.
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
