//! What became of the last downlinks to a device, by the events that history has of them.

use std::{cmp::Reverse, time::Duration};

use api::history::{Query, Record};
use base64::{Engine, engine::general_purpose::STANDARD};
use client::handler::HandlerClient;
use futures::future::try_join_all;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;
use types::DevId;

use crate::{
    Result,
    site::{
        page::{Time, hex, short},
        viewer::InApplication,
    },
};

/// The events of downlinks, each with what it says and how its badge looks.
const EVENTS: [(&str, &str, &str); 4] = [
    ("down/scheduled", "queued", ""),
    ("down/sent", "sent", ""),
    ("down/acks", "acknowledged", " good"),
    ("down/errors", "failed", " bad"),
];
/// Maximum time that a page waits for history, which is searched to its end if a device has few of these events.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Number of events that are shown.
const SHOWN_MAX: u32 = 10;

/// An event of a downlink.
pub(super) struct DownlinkRow {
    pub(super) id: String,
    pub(super) time: Time,
    pub(super) state: &'static str,
    /// The CSS class of its badge.
    pub(super) class: &'static str,
    /// The bytes or fields, and the port, as far as the event has them.
    pub(super) downlink: String,
    /// The reason why it failed; empty otherwise.
    pub(super) reason: String,
}

/// The members of an event that are shown.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    message: Downlink,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Downlink {
    port: u32,
    payload_raw: String,
    /// In place of bytes, if the downlink was given as fields.
    payload_fields: Value,
}

/// The newest events of downlinks, the newest first; none if history does not answer in time.
pub(super) async fn rows(request: &InApplication, handler: &HandlerClient, dev_id: &DevId) -> Option<Vec<DownlinkRow>> {
    in_time(WAIT_MAX, find(request, handler, dev_id)).await
}

/// Whatever else is wrong with history, the messages of the device say so.
async fn in_time(
    time_max: Duration,
    found: impl Future<Output = Result<Vec<DownlinkRow>>>,
) -> Option<Vec<DownlinkRow>> {
    timeout(time_max, found).await.ok().map(Result::unwrap_or_default)
}

async fn find(request: &InApplication, handler: &HandlerClient, dev_id: &DevId) -> Result<Vec<DownlinkRow>> {
    let records = EVENTS.map(|(kind, ..)| {
        let (app_id, dev_id, kind) = (request.app_id().to_string(), dev_id.to_string(), kind.to_owned());
        handler.list_records(Query { app_id, dev_id, kind, limit: SHOWN_MAX, ..Query::default() })
    });
    let mut records: Vec<_> = try_join_all(records).await?.into_iter().flat_map(|list| list.records).collect();
    records.sort_by_key(|record| Reverse(record.time));
    records.truncate(SHOWN_MAX as usize);
    Ok(records.iter().filter_map(DownlinkRow::of).collect())
}

impl DownlinkRow {
    /// Returns an event; none if the record is of another kind.
    fn of(record: &Record) -> Option<Self> {
        let (_, state, class) = EVENTS.into_iter().find(|(kind, ..)| *kind == record.kind)?;
        let Body { message, error } = serde_json::from_str(&record.fields).unwrap_or_default();
        let (id, time) = (record.id.clone(), Time(record.time));
        Some(Self { id, time, state, class, downlink: message.text(), reason: short(&error) })
    }
}

impl Downlink {
    fn text(&self) -> String {
        let payload = match &self.payload_fields {
            Value::Null => hex(&STANDARD.decode(&self.payload_raw).unwrap_or_default()),
            fields => short(&fields.to_string()),
        };
        match (payload.is_empty(), self.port) {
            (true, _) => String::new(),
            (false, 0) => payload,
            (false, port) => format!("{payload} on port {port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, fields: &str) -> Option<DownlinkRow> {
        DownlinkRow::of(&Record { kind: kind.to_owned(), fields: fields.to_owned(), ..Record::default() })
    }

    #[tokio::test]
    async fn a_page_does_not_wait_for_ever_and_knows_that_it_did_not() {
        assert!(in_time(Duration::ZERO, std::future::pending()).await.is_none());
        assert!(in_time(WAIT_MAX, async { Ok(Vec::new()) }).await.is_some_and(|rows| rows.is_empty()));
    }

    #[test]
    fn an_event_says_what_became_of_which_downlink() {
        let message = r#"{"message":{"port":7,"confirmed":true,"payload_raw":"AQI="}}"#;
        let acked = event("down/acks", message).unwrap();
        assert_eq!((acked.state, acked.class, acked.downlink.as_str()), ("acknowledged", " good", "0102 on port 7"));
        let failed = event("down/errors", r#"{"error":"it has\u202e expired"}"#).unwrap();
        assert_eq!((failed.state, failed.downlink.as_str()), ("failed", ""));
        assert_eq!(failed.reason, r"it has\u202e expired");
        let queued = event("down/scheduled", r#"{"message":{"payload_fields":{"led":7}}}"#).unwrap();
        assert_eq!((queued.state, queued.downlink.as_str()), ("queued", r#"{"led":7}"#));
        assert_eq!(event("down/sent", "").unwrap().state, "sent");
        assert!(event("up", "{}").is_none());
    }
}
