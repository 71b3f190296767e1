//! Stored messages of an application over HTTP: files of them, charts, decoding them and sending them again.

use std::{marker::PhantomData, ops::Range, time::Duration};

use api::{
    discovery::Announcement,
    history::Query,
    rest::handler::{Chart, DecodeAgain, DecodeReport, SendAgain, SendReport, UNREADABLE_TRAILER},
};
use bytes::Bytes;
use http_body_util::BodyExt;
use reqwest::{
    Body, Method, Response,
    header::{AUTHORIZATION, TE},
};
use serde::{Serialize, de::DeserializeOwned};
use types::{AppId, Credential, DevId, Timestamp};

use crate::{Result, transport::http::Http};

/// Maximum duration of an export, of decoding again or of sending again.
const TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of a report, in bytes.
const REPORT_BYTES_MAX: usize = 4 << 20;

/// A file of records, in parts.
#[derive(Debug)]
pub struct Export {
    http: Http,
    body: Body,
    unreadable_files: Option<String>,
}

impl Export {
    /// Asks an announced handler for a file of this format (`jsonl`, `csv` or `parquet`) with all records that match
    /// the query. Its limit does not count.
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
        let response = http.open(request.header(TE, "trailers").timeout(TIMEOUT)).await?;
        Ok(Self { http, body: response.into(), unreadable_files: None })
    }

    /// The next part; none after the last one.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        while let Some(frame) = self.body.frame().await {
            match frame.map_err(|error| self.http.failed(error))?.into_data() {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(frame) => {
                    let names = frame.trailers_ref().and_then(|trailers| trailers.get(UNREADABLE_TRAILER));
                    self.unreadable_files = names.and_then(|names| names.to_str().ok()).map(str::to_owned);
                }
            }
        }
        Ok(None)
    }

    /// Returns the names of files that the handler could not read, after the last part: their records are missing.
    pub fn unreadable_files(&self) -> Option<&str> {
        self.unreadable_files.as_deref()
    }
}

/// A client of the charts of one application. Limits and retries are those of `HandlerClient`.
#[derive(Clone, Debug)]
pub struct ChartClient {
    http: Http,
    app_id: AppId,
    credential: Credential,
}

impl ChartClient {
    /// Creates a client for an announced handler, trusting the announced certificate. The first call connects.
    pub fn connect(announcement: &Announcement, app_id: AppId, credential: Credential) -> Result<Self> {
        Ok(Self { http: Http::of_handler(announcement)?, app_id, credential })
    }

    /// The numeric fields of a device over time, or one of them, with at most so many points each.
    pub async fn chart(&self, dev_id: &DevId, time: Range<Timestamp>, field: &str, points: usize) -> Result<Chart> {
        let mut url = self.http.url(&["applications", self.app_id.as_str(), "history", "chart"]);
        let (since, until, points) = (time.start.to_rfc3339(), time.end.to_rfc3339(), points.to_string());
        let all = [("dev_id", dev_id.as_str()), ("since", &since), ("until", &until), ("points", &points)];
        url.query_pairs_mut().extend_pairs(all).extend_pairs((!field.is_empty()).then_some(("field", field)));
        let request = self.http.request_to(Method::GET, url);
        self.http.json(request.header(AUTHORIZATION, self.credential.to_header())).await
    }
}

/// Progress reports of a handler that works on stored messages, as they arrive.
#[derive(Debug)]
pub struct Reports<R> {
    http: Http,
    response: Response,
    received: Vec<u8>,
    reports: PhantomData<R>,
}

/// Stored uplinks that a handler decodes again.
pub type DecodeReports = Reports<DecodeReport>;

/// Stored messages that a handler sends again.
pub type SendReports = Reports<SendReport>;

impl DecodeReports {
    /// Asks an announced handler to decode stored uplinks again.
    pub async fn start(
        announcement: &Announcement,
        app_id: &AppId,
        credential: &Credential,
        body: &DecodeAgain,
    ) -> Result<Self> {
        Self::post(announcement, (app_id, credential), "decode", body).await
    }
}

impl SendReports {
    /// Asks an announced handler to send stored messages again.
    pub async fn start(
        announcement: &Announcement,
        app_id: &AppId,
        credential: &Credential,
        body: &SendAgain,
    ) -> Result<Self> {
        Self::post(announcement, (app_id, credential), "replay", body).await
    }
}

impl<R: DeserializeOwned> Reports<R> {
    async fn post(
        announcement: &Announcement,
        (app_id, credential): (&AppId, &Credential),
        what: &str,
        body: &impl Serialize,
    ) -> Result<Self> {
        let http = Http::of_handler(announcement)?;
        let request = http.request(Method::POST, &["applications", app_id.as_str(), "history", what]);
        let request = request.header(AUTHORIZATION, credential.to_header()).json(body);
        let response = http.open(request.timeout(TIMEOUT)).await?;
        Ok(Self { http, response, received: Vec::new(), reports: PhantomData })
    }

    /// The next report; none after the last one, also if the connection was lost before.
    pub async fn next(&mut self) -> Result<Option<R>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(|error| self.http.unreadable(error));
            }
            if self.received.len() > REPORT_BYTES_MAX {
                return Err(self.http.unreadable("a report is too long"));
            }
            match self.http.next_part(&mut self.response).await? {
                Some(part) => self.received.extend_from_slice(&part),
                None => return Ok(None),
            }
        }
    }
}

/// A query as the parameters of a URL.
fn pairs(query: &Query) -> Vec<(&'static str, String)> {
    let time = |nanos: Option<i64>| nanos.map(|nanos| Timestamp::from_nanos(nanos).to_rfc3339()).unwrap_or_default();
    let number = |number: u32| if number == 0 { String::new() } else { number.to_string() };
    let flag = |is_set: bool| if is_set { "true".to_owned() } else { String::new() };
    let all = [
        ("dev_id", query.dev_id.clone()),
        ("since", time(query.since)),
        ("until", time(query.until)),
        ("kind", query.kind.clone()),
        ("port", query.port.map(|port| port.to_string()).unwrap_or_default()),
        ("failed", flag(query.failed)),
        ("text", query.text.clone()),
        ("field", query.field.clone()),
        ("version", number(query.version)),
        ("without_changes", flag(query.without_changes)),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}
