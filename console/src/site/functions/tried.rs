//! The last messages, and the results of changed functions for them, as a part of their page.

use std::time::Duration;

use api::history::{Query, Record};
use tokio::time::timeout;

use super::form::FunctionsForm;
use crate::{
    Result,
    functions::trial::{self, MESSAGES_MAX, Trial, Verdict},
    site::{
        page::{Time, short, short_hex},
        viewer::InApplication,
    },
};

/// Maximum time that a page waits for history, which is searched to its end if a device has few messages.
const WAIT_MAX: Duration = Duration::from_secs(2);

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
        let Trial { record, now, verdict, .. } = trial;
        let before = if record.failure.is_empty() { &record.fields } else { &record.failure };
        Self {
            before: short(before),
            time: Time(record.time),
            payload: short_hex(&record.payload),
            id: record.id,
            dev_id: record.dev_id,
            port: record.port,
            // A failure has its line of the source and the logs below it.
            now: short(now.lines().next().unwrap_or_default()),
            verdict,
        }
    }
}

/// Runs the functions of a form on the last messages.
pub(super) async fn rows(request: &InApplication, form: &FunctionsForm) -> Result<Vec<TrialRow>> {
    let originals = latest(request, &form.device).await?;
    let trials = trial::run(&request.handler().await?, &form.functions, originals).await?;
    Ok(trials.into_iter().map(TrialRow::new).collect())
}

/// The last uplinks of a device, or of all of them; none if history does not answer in time.
pub(super) async fn latest_in_time(request: &InApplication, dev_id: &str) -> Vec<Record> {
    let found = timeout(WAIT_MAX, latest(request, dev_id)).await;
    // The page is complete without them.
    found.map(Result::unwrap_or_default).unwrap_or_default()
}

/// The last uplinks of a device, or of all of them if it is empty, the newest first.
async fn latest(request: &InApplication, dev_id: &str) -> Result<Vec<Record>> {
    let query = Query {
        app_id: request.app_id().to_string(),
        dev_id: dev_id.to_owned(),
        kind: "up".to_owned(),
        // Corrections are beside their originals.
        limit: MESSAGES_MAX * 4,
        ..Query::default()
    };
    let list = request.handler().await?.list_records(query).await?;
    let originals = list.records.into_iter().filter(|record| record.corrects.is_empty());
    Ok(originals.take(MESSAGES_MAX as usize).collect())
}
