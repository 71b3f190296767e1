//! Reasons why a version that a share of the devices had is not live, from the event in history.

use std::time::Duration;

use api::{
    history::{Query, Record},
    version::Version,
};
use client::handler::HandlerClient;
use tokio::time::timeout;
use types::ErrorEvent;

use crate::{Result, site::viewer::InApplication};

/// Maximum time that a page waits for history, which may be long.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of records that are searched: functions may log the same text.
const RECORDS_MAX: u32 = 10;

/// A version that was tried, and then abandoned.
pub(in crate::site) struct Abandoned {
    pub(in crate::site) version: u32,
    /// The reason, if it was abandoned by itself and history still knows: a sentence without its period.
    pub(in crate::site) reason: String,
    /// The message that says so.
    pub(in crate::site) id: String,
}

impl Abandoned {
    /// The newest version, if it was tried and is not live.
    pub(in crate::site) async fn newest(request: &InApplication, handler: &HandlerClient) -> Result<Option<Self>> {
        let versions = handler.list_versions(request.app_id()).await?;
        match versions.into_iter().max_by_key(|version| version.number) {
            Some(newest) if !newest.live && newest.share_percent <= 0.0 => {
                Ok(Some(Self::of(request, handler, &newest).await))
            }
            _ => Ok(None),
        }
    }

    /// Looks in history for the end of a version that is not live. Without an answer, the reason is empty.
    pub(in crate::site) async fn of(request: &InApplication, handler: &HandlerClient, version: &Version) -> Self {
        let number = version.number;
        let query = Query {
            app_id: request.app_id().to_string(),
            since: (version.time > 0).then_some(version.time),
            kind: "up/errors".to_owned(),
            text: beginning(number),
            limit: RECORDS_MAX,
            ..Query::default()
        };
        let found = timeout(WAIT_MAX, handler.list_records(query)).await;
        // The page is of use without it.
        let records = found.ok().and_then(Result::ok).map(|list| list.records).unwrap_or_default();
        let (reason, id) = records.into_iter().find_map(|record| reason(number, record)).unwrap_or_default();
        Self { version: number, reason, id }
    }
}

/// Returns the beginning of the handler's event.
fn beginning(version: u32) -> String {
    format!("Version {version} of the payload functions was abandoned")
}

/// Returns the event's text and its id. A function that fails may use the same text, but not at the beginning.
fn reason(version: u32, record: Record) -> Option<(String, String)> {
    let event: ErrorEvent = serde_json::from_str(&record.fields).ok()?;
    event.error.starts_with(&beginning(version)).then_some((event.error, record.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_handler_says_why_a_version_was_abandoned() {
        let record = |fields: &str| Record { id: "1".into(), fields: fields.into(), ..Record::default() };
        let said = r#"{"error":"Version 2 of the payload functions was abandoned: it failed"}"#;
        let (why, id) = reason(2, record(said)).unwrap();
        assert!(why.ends_with("it failed") && id == "1", "{why} {id}");
        assert_eq!(reason(3, record(said)), None);
        let thrown = r#"{"error":"Unable to decode: Version 2 of the payload functions was abandoned"}"#;
        assert_eq!(reason(2, record(thrown)), None);
        assert_eq!(reason(2, record("")), None);
    }
}
