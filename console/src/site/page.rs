//! Shared parts of all pages: their frame, headers and files.

pub(super) mod compression;
pub(super) mod error;

use askama::Template;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::get,
};
use server::{
    audit::visible,
    site::{Asset, page},
};
use types::{HexBytes, Timestamp};

use super::failure::Failure;
use crate::{Console, Error, messages::fields::spaced};

/// Pages load only our own styles, pictures and scripts, call only this site, and submit forms to it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'",
);

const STYLE: Asset =
    Asset::new("/console/assets/site.css", "text/css; charset=utf-8", include_str!("../../../web/site.css"));
const ICON: Asset = Asset::new("/console/assets/icon.svg", "image/svg+xml", include_str!("../../../web/icon.svg"));
const TIMES: Asset = script("/console/assets/times.js", include_str!("../../../web/console/times.js"));
const CHOOSE_FILE: Asset =
    script("/console/assets/choose_file.js", include_str!("../../../web/console/choose_file.js"));
const SEND_ONCE: Asset = script("/console/assets/send_once.js", include_str!("../../../web/console/send_once.js"));
const GO_ON: Asset = script("/console/assets/go_on.js", include_str!("../../../web/console/go_on.js"));
const REFRESH: Asset = script("/console/assets/refresh.js", include_str!("../../../web/console/refresh.js"));
const LATE_ROWS: Asset = script("/console/assets/late_rows.js", include_str!("../../../web/console/late_rows.js"));
const SCAN_CODE: Asset = script("/console/assets/scan_code.js", include_str!("../../../web/console/scan_code.js"));
const SOURCE_EDITORS: Asset =
    script("/console/assets/source_editors.js", include_str!("../../../web/console/source_editors.js"));
const LIVE: Asset = script("/console/assets/live.js", include_str!("../../../web/console/live.js"));

/// Maximum number of characters of a result in a table.
const SHORT_CHARS: usize = 160;
/// Maximum number of bytes of a payload in a table.
const SHORT_BYTES: usize = 24;

/// Values for the layout of a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    /// The viewer's name, if they are logged in.
    pub(super) username: Option<String>,
    /// The notice about what was just done.
    pub(super) notice: Option<Notice>,
    pub(super) path: String,
    /// Prefix of links to pages of the account service.
    pub(super) account: String,
    /// True if the viewer may see the pages of operators.
    pub(super) is_operator: bool,
}

/// A message about what was just done. URLs contain only its name, so that links cannot make pages show other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Notice(&'static str, &'static str);

/// All messages, with their names in URLs.
const NOTICES: [Notice; 25] = [
    Notice("saved", "Saved. New messages are processed with this version."),
    Notice("overtaken", "Saved. Someone else saved a version at the same time: check all versions."),
    Notice("unchanged", "Nothing changed: this version is already live."),
    Notice("restored", "Restored. New messages are processed with this version."),
    Notice("shared", "Rollout started. Compare the two versions below."),
    Notice("share", "Share changed."),
    Notice("promoted", "Promoted. New messages of all devices are processed with this version."),
    Notice("abandoned", "Abandoned. All devices use the live version again."),
    Notice("scheduled", "Downlink queued."),
    Notice("cleared", "Queue cleared."),
    Notice("simulated", "Simulated uplink sent. Its result is among the latest messages."),
    Notice("sent", "Sent again to everyone who receives live messages."),
    Notice("sent-there", "Sent again to this receiver alone."),
    Notice("unwanted", "Not delivered: no subscriber, webhook or other output receives such messages."),
    Notice("created", "The webhook is set. Send a sample message to see what it answers."),
    Notice("webhook-changed", "The webhook was changed. Send a sample message to see what it answers."),
    Notice("deleted", "Deleted."),
    Notice("resent", "These messages are at the end of the queue again."),
    Notice("none-resent", "Nothing was left to send."),
    Notice("taken", "The receiver has taken a sample message."),
    Notice("forgotten", "The messages that it did not take are deleted."),
    Notice("silence-set", "Saved. A first time counts from now on, another one from the last uplink of each device."),
    Notice("device-registered", "Device registered."),
    Notice("device-changed", "Changes saved."),
    Notice("registered", "Application registered with the handler."),
];

/// A response with a page.
pub(super) struct Page<T> {
    template: T,
    status: StatusCode,
    /// Another origin from which it loads pictures.
    images: Option<String>,
}

/// A time, for people and for scripts.
#[derive(Clone, Copy)]
pub(super) struct Time(pub(super) i64);

impl Frame {
    /// Returns true if the page is in the part of the site with this path.
    pub(super) fn is_in(&self, part: &str) -> bool {
        self.path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns true if it is a page of operators. To others, it looks like any page that does not exist.
    pub(super) fn is_in_operator(&self) -> bool {
        self.is_operator && (self.is_in("/console/operator") || self.is_in("/console/bridges"))
    }

    pub(super) fn style_path(&self) -> String {
        STYLE.link()
    }

    pub(super) fn icon_path(&self) -> String {
        ICON.link()
    }

    pub(super) fn times_path(&self) -> String {
        TIMES.link()
    }

    pub(super) fn choose_file_path(&self) -> String {
        CHOOSE_FILE.link()
    }

    pub(super) fn send_once_path(&self) -> String {
        SEND_ONCE.link()
    }

    pub(super) fn go_on_path(&self) -> String {
        GO_ON.link()
    }

    pub(super) fn refresh_path(&self) -> String {
        REFRESH.link()
    }

    pub(super) fn late_rows_path(&self) -> String {
        LATE_ROWS.link()
    }

    pub(super) fn scan_code_path(&self) -> String {
        SCAN_CODE.link()
    }

    pub(super) fn source_editors_path(&self) -> String {
        SOURCE_EDITORS.link()
    }

    pub(super) fn live_path(&self) -> String {
        LIVE.link()
    }
}

impl Notice {
    pub(super) fn named(name: &str) -> Option<Self> {
        NOTICES.into_iter().find(|notice| notice.0 == name)
    }

    pub(super) fn text(self) -> &'static str {
        self.1
    }
}

impl<T> Page<T> {
    pub(super) fn new(template: T) -> Self {
        Self { template, status: StatusCode::OK, images: None }
    }

    pub(super) fn template_mut(&mut self) -> &mut T {
        &mut self.template
    }

    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Lets it load pictures from another origin, too. Those hear no addresses of pages: see [`page`].
    pub(super) fn with_images_from(self, origin: Option<String>) -> Self {
        Self { images: origin, ..self }
    }
}

impl<T: Template> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        let policy = match &self.images {
            Some(origin) => widened(POLICY, "img-src", origin),
            None => POLICY,
        };
        match self.template.render() {
            Ok(html) => page(self.status, policy, html),
            Err(error) => Failure::from(Error::from(error)).into_response(),
        }
    }
}

impl Time {
    /// RFC 3339.
    pub(super) fn exact(&self) -> String {
        Timestamp::from_nanos(self.0).to_rfc3339()
    }

    /// To the second, UTC.
    pub(super) fn text(&self) -> String {
        let exact: String = self.exact().chars().take(19).collect();
        format!("{} UTC", exact.replace('T', " "))
    }
}

/// Lets forms lead to the account service, where it is another site: logins and logouts go there.
pub(super) async fn allow_account(State(console): State<Console>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let account = console.place.account_url();
    if let (false, Some(policy)) = (account.is_empty(), response.headers_mut().get_mut(header::CONTENT_SECURITY_POLICY))
    {
        *policy = widened(policy.clone(), "form-action", account);
    }
    response
}

/// A policy in which a directive allows another origin beside this site; unchanged if a header cannot have that.
fn widened(policy: HeaderValue, directive: &str, origin: &str) -> HeaderValue {
    let own = format!("{directive} 'self'");
    let wider = policy.to_str().unwrap_or_default().replace(&own, &format!("{own} {origin}"));
    HeaderValue::try_from(wider).unwrap_or(policy)
}

pub(super) fn assets() -> Router<Console> {
    [STYLE, ICON, TIMES, CHOOSE_FILE, SEND_ONCE, GO_ON, REFRESH, LATE_ROWS, SCAN_CODE, SOURCE_EDITORS, LIVE]
        .into_iter()
        .fold(Router::new(), |router, asset| router.route(asset.path(), get(async move || asset)))
}

/// A file of CSV, for the browser to save.
pub(super) fn csv_file(name: &str, body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let disposition = [(header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""))];
    (headers, disposition, body.into()).into_response()
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    HexBytes(bytes.to_vec()).to_string()
}

/// The beginning of bytes in hexadecimal, for tables.
pub(super) fn short_hex(bytes: &[u8]) -> String {
    match bytes.get(..SHORT_BYTES) {
        Some(start) if bytes.len() > SHORT_BYTES => format!("{}…", hex(start)),
        _ => hex(bytes),
    }
}

/// A text that somebody else has chosen, on one line: characters that nobody sees or that change the direction of text
/// are escaped as in JSON.
pub(super) fn shown(text: &str) -> String {
    visible(text).into_owned()
}

/// [`shown`] for a text of several lines, which may be indented with tabs.
pub(super) fn shown_lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(shown).collect::<Vec<_>>().join("\t");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The beginning of a text, as [`shown`], for tables.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(SHORT_CHARS) {
        Some((end, _)) => format!("{}…", shown(&text[..end])),
        None => shown(text),
    }
}

/// [`short`] for fields: lines break between them, and within words only if they have to.
pub(super) fn short_fields(json: &str) -> String {
    // One character more shows that it is cut.
    let end = json.char_indices().nth(SHORT_CHARS + 1).map_or(json.len(), |(end, _)| end);
    short(&spaced(&json[..end]))
}

/// A number with a comma after each thousand, as the playground writes it.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A duration in microseconds, as it is read: `0.3 ms`, `34 ms`, `1.2 s`.
pub(super) fn milliseconds(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// JSON with line breaks; other text as it is. Both as [`shown_lines`].
pub(super) fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json);
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value));
    shown_lines(pretty.as_deref().unwrap_or(json))
}

const fn script(path: &'static str, content: &'static str) -> Asset {
    Asset::new(path, "text/javascript; charset=utf-8", content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_widened_by_one_origin_for_one_purpose() {
        let policy =
            widened(widened(POLICY, "img-src", "https://tile.example.com"), "form-action", "https://a.example");
        let policy = policy.to_str().unwrap();
        assert!(policy.contains("; img-src 'self' https://tile.example.com; script-src 'self'; "), "{policy}");
        assert!(policy.contains("; form-action 'self' https://a.example; frame-ancestors 'none'"), "{policy}");
        assert_eq!(policy.matches("https://").count(), 2, "{policy}");
        assert_eq!(widened(POLICY, "img-src", "a\nb"), POLICY);
    }

    #[test]
    fn thousands_are_grouped() {
        let numbers = [0, 999, 1000, 14_637, 208_327, 1_861_306].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "14,637", "208,327", "1,861,306"]);
    }

    #[test]
    fn what_nobody_sees_is_escaped_and_lines_and_indents_stay() {
        assert_eq!(shown("a\u{202e}b\nc"), r"a\u202eb\u000ac");
        assert_eq!(shown_lines("if (a) {\r\n\treturn '\u{2066}'\n}"), "if (a) {\n\treturn '\\u2066'\n}");
        assert_eq!(pretty("{\"a\":\"\u{202e}x\"}"), "{\n  \"a\": \"\\u202ex\"\n}");
        assert_eq!(pretty("no \u{1b}JSON"), r"no \u001bJSON");
        assert_eq!(short(&"\u{202e}".repeat(SHORT_CHARS + 1)), r"\u202e".repeat(SHORT_CHARS) + "…");
        let long = |length| format!("{{\"a\":1,\"b\":\"{}\"}}", "x".repeat(length));
        assert_eq!(short_fields(&long(3)), r#"{"a":1, "b":"xxx"}"#);
        assert!(short_fields(&long(SHORT_CHARS)).ends_with("xx…"));
    }
}
