//! The state of the last downlinks to a device, by the events that history has of each.

use std::{cmp::Reverse, time::Duration};

use api::history::{Query, Record};
use base64::{Engine, engine::general_purpose::STANDARD};
use client::handler::HandlerClient;
use futures::future::try_join_all;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;
use types::DevId;

use super::Queued;
use crate::{
    Result,
    site::{
        page::{Time, hex, short, short_fields},
        viewer::InApplication,
    },
};

/// The events of downlinks, in their order.
const EVENTS: [&str; 4] = ["down/scheduled", "down/sent", "down/acks", "down/errors"];
/// Maximum time that a page waits for history, which is searched to its end if a device has few of these events.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Number of downlinks that are shown, and of events of each kind that are read.
const SHOWN_MAX: u32 = 10;
/// Part of the reason of a downlink that was sent as often as possible.
const NOT_ACKNOWLEDGED: &str = "did not acknowledge";

/// A downlink with its state.
pub(super) struct DownlinkRow {
    pub(super) last: Step,
    /// The steps before the last one, the newest first.
    pub(super) earlier: Vec<Step>,
    /// The bytes or fields, and the port, as far as the events have them.
    pub(super) downlink: String,
    /// The reason for its state, or what it means; empty if it needs none.
    pub(super) reason: String,
    /// Names it in its events; empty if they have no name.
    downlink_id: String,
    is_confirmed: bool,
    /// The bytes in hexadecimal; none if it was given as fields.
    bytes: Option<String>,
    port: u32,
}

/// An event of a downlink.
pub(super) struct Step {
    /// Names its record.
    pub(super) id: String,
    pub(super) time: Time,
    pub(super) state: State,
}

/// The states of a downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    /// It is not in the queue any more, and nothing else is known about it.
    Left,
    Sent,
    Acknowledged,
    NotAcknowledged,
    Failed,
}

/// The members of an event that are shown.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    message: Downlink,
    error: String,
    downlink_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Downlink {
    port: u32,
    confirmed: bool,
    payload_raw: Option<String>,
    /// In place of bytes, if the downlink was given as fields.
    payload_fields: Value,
}

impl State {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Left => "no longer queued",
            Self::Sent => "sent",
            Self::Acknowledged => "acknowledged",
            Self::NotAcknowledged => "not acknowledged",
            Self::Failed => "failed",
        }
    }

    /// The CSS class of its badge.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Queued | Self::Left | Self::Sent => "",
            Self::Acknowledged => " good",
            Self::NotAcknowledged | Self::Failed => " bad",
        }
    }
}

/// The newest downlinks, the newest first; none if history does not answer in time.
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
    let records = EVENTS.map(|kind| {
        let (app_id, dev_id, kind) = (request.app_id().to_string(), dev_id.to_string(), kind.to_owned());
        handler.list_records(Query { app_id, dev_id, kind, limit: SHOWN_MAX, ..Query::default() })
    });
    Ok(by_downlink(try_join_all(records).await?.into_iter().flat_map(|list| list.records).collect()))
}

/// A row for each downlink that the events are about.
fn by_downlink(mut records: Vec<Record>) -> Vec<DownlinkRow> {
    let place = |record: &Record| EVENTS.iter().position(|kind| *kind == record.kind);
    records.sort_by_key(|record| Reverse((record.time, place(record))));
    let mut downlinks: Vec<Vec<DownlinkRow>> = Vec::new();
    for event in records.into_iter().filter_map(|record| DownlinkRow::of(&record)) {
        let is_same = |other: &DownlinkRow| !event.downlink_id.is_empty() && other.downlink_id == event.downlink_id;
        match downlinks.iter_mut().find(|events| events.iter().any(is_same)) {
            Some(events) => events.push(event),
            None => downlinks.push(vec![event]),
        }
    }
    downlinks.into_iter().take(SHOWN_MAX as usize).filter_map(DownlinkRow::after).collect()
}

/// Says which of the downlinks are not in the queue any more, although nothing else is known about them.
pub(super) fn compare(rows: &mut [DownlinkRow], queue: &[Queued]) {
    let mut waiting: Vec<&Queued> = queue.iter().collect();
    // Fields do not show which bytes they became, so they get what remains.
    for has_bytes in [true, false] {
        for row in rows.iter_mut().filter(|row| row.last.state == State::Queued && row.bytes.is_some() == has_bytes) {
            match waiting.iter().position(|queued| row.may_be(queued)) {
                Some(place) => _ = waiting.remove(place),
                None => row.leave(),
            }
        }
    }
}

impl DownlinkRow {
    /// A downlink after one event; none if the record is of another kind, or only answers the device.
    fn of(record: &Record) -> Option<Self> {
        let Body { message, error, downlink_id } = serde_json::from_str(&record.fields).unwrap_or_default();
        let state = match record.kind.as_str() {
            "down/scheduled" => State::Queued,
            "down/sent" if message.is_empty() => return None,
            "down/sent" => State::Sent,
            "down/acks" => State::Acknowledged,
            "down/errors" if error.contains(NOT_ACKNOWLEDGED) => State::NotAcknowledged,
            "down/errors" => State::Failed,
            _ => return None,
        };
        Some(Self {
            last: Step { id: record.id.clone(), time: Time(record.time), state },
            earlier: Vec::new(),
            downlink: message.text(),
            reason: short(&error),
            downlink_id,
            is_confirmed: message.confirmed,
            bytes: message.payload_fields.is_null().then(|| message.bytes()),
            port: message.port,
        })
    }

    /// A downlink after its events, which are given with the newest first; none without any.
    fn after(mut events: Vec<Self>) -> Option<Self> {
        // It was queued before all else, even if an uplink took it so soon that this was recorded later.
        events.sort_by_key(|event| event.last.state == State::Queued);
        let mut events = events.into_iter();
        let mut row = events.next()?;
        events.for_each(|event| row.add_earlier(event));
        row.explain();
        Some(row)
    }

    /// Adds an event that was before those until now.
    fn add_earlier(&mut self, event: Self) {
        self.earlier.push(event.last);
        self.is_confirmed |= event.is_confirmed;
        if !event.downlink.is_empty() {
            // As it was published.
            self.downlink = event.downlink;
        }
    }

    fn explain(&mut self) {
        if self.last.state == State::Sent && self.is_confirmed {
            "The device has not acknowledged it yet.".clone_into(&mut self.reason);
        }
    }

    fn may_be(&self, queued: &Queued) -> bool {
        self.bytes.as_ref().is_none_or(|bytes| *bytes == queued.payload) && [0, queued.port].contains(&self.port)
    }

    fn leave(&mut self) {
        self.last.state = State::Left;
        "It was replaced or cleared, or its network has it and has not reported yet.".clone_into(&mut self.reason);
    }
}

impl Downlink {
    fn is_empty(&self) -> bool {
        self.port == 0 && self.bytes().is_empty() && self.payload_fields.is_null()
    }

    fn bytes(&self) -> String {
        hex(&STANDARD.decode(self.payload_raw.as_deref().unwrap_or_default()).unwrap_or_default())
    }

    fn text(&self) -> String {
        let payload = match &self.payload_fields {
            Value::Null => self.bytes(),
            fields => short_fields(&fields.to_string()),
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

    fn record(time: i64, kind: &str, fields: &str) -> Record {
        Record { time, id: time.to_string(), kind: kind.to_owned(), fields: fields.to_owned(), ..Record::default() }
    }

    fn event(kind: &str, fields: &str) -> Option<DownlinkRow> {
        DownlinkRow::of(&record(1, kind, fields))
    }

    fn states(row: &DownlinkRow) -> Vec<State> {
        [&row.last].into_iter().chain(&row.earlier).map(|step| step.state).collect()
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
        assert_eq!((acked.last.state, acked.downlink.as_str()), (State::Acknowledged, "0102 on port 7"));
        let failed = event("down/errors", r#"{"error":"it has\u202e expired"}"#).unwrap();
        assert_eq!((failed.last.state, failed.downlink.as_str()), (State::Failed, ""));
        assert_eq!(failed.reason, r"it has\u202e expired");
        let queued = event("down/scheduled", r#"{"message":{"payload_fields":{"led":7}}}"#).unwrap();
        assert_eq!((queued.last.state, queued.downlink.as_str()), (State::Queued, r#"{"led":7}"#));
        assert!(event("down/sent", r#"{"message":{"port":0,"payload_raw":null}}"#).is_none(), "it answers the device");
        assert!(event("up", "{}").is_none());
    }

    #[test]
    fn each_downlink_is_a_row_with_its_last_state_and_the_steps_before() {
        let id = |id: &str, rest: &str| format!(r#"{{"downlink_id":"{id}"{rest}}}"#);
        let bytes = r#","message":{"port":7,"confirmed":true,"payload_raw":"AQI="}"#;
        let rows = by_downlink(vec![
            record(1, "down/scheduled", &id("a", r#","message":{"confirmed":true,"payload_fields":{"led":7}}"#)),
            record(2, "down/scheduled", &id("b", bytes)),
            record(6, "down/scheduled", &id("c", bytes)),
            record(3, "down/sent", &id("a", bytes)),
            record(4, "down/sent", &id("a", bytes)),
            record(4, "down/acks", &id("a", bytes)),
            record(5, "down/sent", &id("b", bytes)),
            record(7, "down/errors", &id("c", r#","error":"the device did not acknowledge the downlink""#)),
            record(8, "down/errors", r#"{"error":"no"}"#),
            record(9, "down/errors", r#"{"error":"no"}"#),
        ]);
        let found: Vec<_> = rows.iter().map(|row| (row.last.id.as_str(), states(row), row.downlink.as_str())).collect();
        let (queued, sent, text) = (State::Queued, State::Sent, "0102 on port 7");
        assert_eq!(
            found,
            [
                ("9", vec![State::Failed], ""),
                ("8", vec![State::Failed], ""),
                ("7", vec![State::NotAcknowledged, queued], text),
                ("5", vec![sent, queued], text),
                ("4", vec![State::Acknowledged, sent, sent, queued], r#"{"led":7}"#),
            ]
        );
        assert!(rows[3].reason.contains("not acknowledged it yet") && rows[4].reason.is_empty());
    }

    #[test]
    fn what_an_uplink_took_at_once_is_sent_even_if_it_is_recorded_as_queued_later() {
        let mut rows = by_downlink(vec![
            record(1, "down/sent", r#"{"downlink_id":"a","message":{"port":7,"payload_raw":"AQI="}}"#),
            record(3, "down/scheduled", r#"{"downlink_id":"a","message":{"payload_fields":{"led":7}}}"#),
            record(4, "down/acks", r#"{"downlink_id":"a","message":{"port":7,"payload_raw":"AQI="}}"#),
            record(5, "down/errors", r#"{"downlink_id":"b","error":"it is too long"}"#),
            record(6, "down/scheduled", r#"{"downlink_id":"b","message":{"port":7,"payload_raw":"AQI="}}"#),
        ]);
        compare(&mut rows, &[]);
        let found: Vec<_> = rows.iter().map(|row| (states(row), row.downlink.as_str(), row.reason.as_str())).collect();
        let queued = State::Queued;
        assert_eq!(
            found,
            [
                (vec![State::Failed, queued], "0102 on port 7", "it is too long"),
                (vec![State::Acknowledged, State::Sent, queued], r#"{"led":7}"#, ""),
            ]
        );
    }

    #[test]
    fn what_left_the_queue_without_a_word_is_not_said_to_be_queued() {
        let scheduled = |time, message: &str| record(time, "down/scheduled", &format!(r#"{{"message":{message}}}"#));
        let mut rows = by_downlink(vec![
            scheduled(1, r#"{"port":7,"payload_raw":"AQI="}"#),
            scheduled(2, r#"{"payload_fields":{"led":7}}"#),
            scheduled(3, r#"{"payload_fields":{"led":8}}"#),
            record(4, "down/sent", r#"{"message":{"port":7,"payload_raw":"AQI="}}"#),
        ]);
        let queued = |payload: &str| Queued { port: 7, payload: payload.to_owned(), confirmed: false };
        compare(&mut rows, &[queued("07"), queued("0102")]);
        let states = |rows: &[DownlinkRow]| rows.iter().map(|row| row.last.state).collect::<Vec<_>>();
        assert_eq!(states(&rows), [State::Sent, State::Queued, State::Left, State::Queued]);
        compare(&mut rows, &[]);
        assert_eq!(states(&rows), [State::Sent, State::Left, State::Left, State::Left]);
    }
}
