//! The last messages, and the results of changed functions for them, as a part of their page.

use std::time::Duration;

use api::history::{Query, Record};
use tokio::time::timeout;

use super::{
    examined::{counts, latest},
    form::FunctionsForm,
    live,
};
use crate::{
    Result,
    functions::{
        comparison::PER_DEVICE,
        trial::{self, MESSAGES_MAX, Trial, Verdict},
    },
    site::{
        page::{Time, short_fields, short_hex},
        viewer::InApplication,
    },
};

/// Maximum time that a page waits for history, which is searched to its end if a device has few messages.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of pages of history that are searched for uplinks. Corrections are beside their originals, and one of
/// these has any number of them.
const PAGES_MAX: usize = 10;
/// Number of records on such a page.
const PAGE_RECORDS: u32 = 40;

/// The results of functions for messages of the past.
pub(super) struct TriedView {
    /// The uplinks that they were tried on, in words.
    pub(super) uplinks: String,
    pub(super) counts: Vec<(u64, Verdict)>,
    /// The number of uplinks of each device that a comparison looks at.
    pub(super) compared_per_device: u32,
    pub(super) rows: Vec<TrialRow>,
}

/// The result of functions for a message of the past, as a row of a table.
pub(super) struct TrialRow {
    pub(super) id: String,
    pub(super) time: Time,
    pub(super) dev_id: String,
    pub(super) port: u32,
    pub(super) payload: String,
    pub(super) before: String,
    pub(super) now: String,
    pub(super) verdict: Verdict,
}

impl TrialRow {
    fn new(trial: Trial) -> Self {
        let Trial { record, before, now, verdict } = trial;
        // A failure has its line of the source and the logs below it.
        let [before, now] = [before, now].map(|made| short_fields(made.text.lines().next().unwrap_or_default()));
        Self {
            before,
            time: Time(record.time),
            payload: short_hex(&record.payload),
            id: record.id,
            dev_id: record.dev_id,
            port: record.port,
            now,
            verdict,
        }
    }
}

impl TriedView {
    /// Runs the functions of a form on the last messages, and those that are live.
    pub(super) async fn of(request: &InApplication, form: &FunctionsForm) -> Result<Self> {
        let handler = request.handler().await?;
        let live = live(request, &handler).await?.functions.unwrap_or_default();
        let originals = latest_originals(request, &form.device).await?;
        let trials = trial::compare(&handler, (&live, &form.functions), originals).await?;
        Ok(Self {
            uplinks: latest(trials.len() as u64, &form.device),
            counts: counts(&trial::count(trials.iter().map(|trial| trial.verdict))),
            compared_per_device: PER_DEVICE,
            rows: trials.into_iter().map(TrialRow::new).collect(),
        })
    }
}

/// The last uplinks of a device, or of all of them; none if history does not answer in time.
pub(super) async fn latest_in_time(request: &InApplication, dev_id: &str) -> Vec<Record> {
    let found = timeout(WAIT_MAX, latest_originals(request, dev_id)).await;
    // The page is complete without them.
    found.map(Result::unwrap_or_default).unwrap_or_default()
}

/// The last uplinks of a device, or of all of them if it is empty, the newest first.
async fn latest_originals(request: &InApplication, dev_id: &str) -> Result<Vec<Record>> {
    let handler = request.handler().await?;
    let mut query = Query {
        app_id: request.app_id().to_string(),
        dev_id: dev_id.to_owned(),
        kind: "up".to_owned(),
        limit: PAGE_RECORDS,
        ..Query::default()
    };
    let mut originals = Vec::new();
    for _ in 0..PAGES_MAX {
        let list = handler.list_records(query.clone()).await?;
        originals.extend(list.records.into_iter().filter(|record| record.corrects.is_empty()));
        if originals.len() >= MESSAGES_MAX || list.next.is_empty() {
            break;
        }
        query.before = list.next;
    }
    originals.truncate(MESSAGES_MAX);
    Ok(originals)
}
