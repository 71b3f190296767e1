//! The results of changed functions for the last messages, as a part of their page.

use api::history::Query;

use super::form::FunctionsForm;
use crate::{
    Result,
    functions::trial::{self, MESSAGES_MAX, Trial, Verdict},
    site::{
        page::{Time, short, short_hex},
        viewer::InApplication,
    },
};

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
    let handler = request.handler().await?;
    let query = Query {
        app_id: request.app_id().to_string(),
        dev_id: form.device.clone(),
        kind: "up".to_owned(),
        // Corrections are beside their originals.
        limit: MESSAGES_MAX * 4,
        ..Query::default()
    };
    let list = handler.list_records(query).await?;
    let originals = list.records.into_iter().filter(|record| record.corrects.is_empty());
    let originals = originals.take(MESSAGES_MAX as usize).collect();
    let trials = trial::run(&handler, &form.functions, originals).await?;
    Ok(trials.into_iter().map(TrialRow::new).collect())
}
