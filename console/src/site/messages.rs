//! The messages of an application that were kept, the newest first.

pub(super) mod again;
pub(super) mod export;
pub(super) mod live;
pub(super) mod message;

use std::time::Duration;

use api::history::{Record, RecordList};
use askama::Template;
use axum::extract::Query;
use types::Timestamp;

use super::{
    failure::{Failure, Problem, partly},
    page::{Frame, Page, Time, short, short_fields, short_hex},
    viewer::InApplication,
};
use crate::{Error, Result, form::drafts::Fields, messages::history::Filter};

/// If a message was recorded so long before or after its time, both are shown.
const APART_MIN: Duration = Duration::from_secs(1);

#[derive(Template)]
#[template(path = "messages.html")]
pub(super) struct List {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    filter: Filter,
    rows: Vec<Row>,
    /// The parameters of the next page, if there is one.
    older: Option<String>,
    /// Files that cannot be read.
    unreadable: Vec<String>,
    problem: Option<Problem>,
}

/// A message in a table.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) time: Time,
    pub(super) recorded: Option<Time>,
    pub(super) dev_id: String,
    pub(super) kind: String,
    pub(super) port: u32,
    pub(super) payload: String,
    pub(super) result: String,
    pub(super) failed: bool,
    /// True for an uplink that no device sent.
    pub(super) simulated: bool,
    /// Zero unless it corrects an earlier result.
    pub(super) revision: u32,
}

impl Row {
    pub(super) fn new(record: Record) -> Self {
        let failed = matches!(record.outcome.as_str(), "failed" | "invalid") || record.kind.ends_with("errors");
        let result = match record.outcome.as_str() {
            "failed" => short(&record.failure),
            "invalid" => format!("invalid: {}", short_fields(&record.fields)),
            _ => short_fields(&record.fields),
        };
        Self {
            // Networks say at least when they received it.
            simulated: record.kind == "up" && record.metadata.is_empty(),
            time: Time(record.time),
            recorded: recorded_apart(&record),
            id: record.id,
            dev_id: record.dev_id,
            kind: record.kind,
            port: record.port,
            payload: short_hex(&record.payload),
            result,
            failed,
            revision: record.revision,
        }
    }
}

/// When a message was recorded, by which messages are sorted, if that is not its time: of a correction, or if a network
/// was late or has another clock.
pub(super) fn recorded_apart(record: &Record) -> Option<Time> {
    let [time, recorded] = [record.time, record.recorded].map(Timestamp::from_nanos);
    // Handlers of earlier versions do not say.
    (record.recorded > 0 && recorded.apart(time) >= APART_MIN).then_some(Time(record.recorded))
}

pub(super) async fn list(request: InApplication, Query(fields): Query<Fields>) -> Result<Page<List>, Failure> {
    let filter = Filter::new(fields);
    let (list, problem) = partly(records(&request, &filter).await)?;
    let RecordList { records, next, unreadable } = list.unwrap_or_default();
    Ok(Page::new(List {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "messages",
        rows: records.into_iter().map(Row::new).collect(),
        older: (!next.is_empty()).then(|| filter.continued(&next)),
        filter,
        unreadable,
        problem,
    }))
}

async fn records(request: &InApplication, filter: &Filter) -> Result<RecordList> {
    let query = filter.query(request.app_id(), request.console.clock.now())?;
    request.handler().await?.list_records(query).await.map_err(Error::from)
}
