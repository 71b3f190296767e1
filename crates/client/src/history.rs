//! Files with what was kept of an application's messages, which a handler serves over HTTP only.

use std::time::Duration;

use api::{discovery::Announcement, history::Query};
use bytes::Bytes;
use reqwest::{Method, Response, header::AUTHORIZATION};
use types::{AppId, Credential, Timestamp};

use crate::{Result, http::Http};

/// How long an export may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A file of records, in parts.
#[derive(Debug)]
pub struct Export {
    http: Http,
    response: Response,
}

impl Export {
    /// Asks an announced handler for a file of this format (`jsonl`, `csv` or `parquet`) with all records that the query
    /// wants, whatever its limit.
    pub async fn start(
        announcement: &Announcement,
        app_id: &AppId,
        credential: &Credential,
        query: &Query,
        format: &str,
    ) -> Result<Self> {
        let http = Http::of_handler(announcement)?;
        let path = ["applications", app_id.as_str(), "history", "export", format];
        let mut url = http.url(&path);
        url.query_pairs_mut().extend_pairs(pairs(query));
        let request = http.request_to(Method::GET, url).header(AUTHORIZATION, credential.to_header());
        let response = http.open(request.timeout(EXPORT_TIMEOUT)).await?;
        Ok(Self { http, response })
    }

    /// The next part; none after the last one.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        self.http.next_part(&mut self.response).await
    }
}

/// A query as the parameters of a URL.
fn pairs(query: &Query) -> Vec<(&'static str, String)> {
    let time = |nanos: Option<i64>| nanos.map(|nanos| Timestamp::from_nanos(nanos).to_rfc3339()).unwrap_or_default();
    let number = |number: u32| if number == 0 { String::new() } else { number.to_string() };
    let all = [
        ("dev_id", query.dev_id.clone()),
        ("since", time(query.since)),
        ("until", time(query.until)),
        ("kind", query.kind.clone()),
        ("port", query.port.map(|port| port.to_string()).unwrap_or_default()),
        ("failed", if query.failed { "true".to_owned() } else { String::new() }),
        ("text", query.text.clone()),
        ("field", query.field.clone()),
        ("version", number(query.version)),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}
