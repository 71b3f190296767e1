//! Imports what a preview has shown, and says of each line what became of it.

use askama::Template;
use client::handler::HandlerClient;
use device_file::{Plan, Planned, Step};
use futures::{StreamExt, stream};

use super::file::ImportFile;
use crate::{
    Error, Result,
    form::device::read,
    site::{
        devices::steps::{End, Outcome, PARALLEL, Shown},
        page::{Frame, Page},
        viewer::InApplication,
    },
};

#[derive(Template)]
#[template(path = "device_import_done.html")]
pub(super) struct Done {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    /// The file, to look at what is left of it.
    sealed: String,
    created: usize,
    updated: usize,
    unchanged: usize,
    failed: usize,
    left: usize,
    refused: usize,
    /// Those that were not set come first.
    lines: Shown<Line>,
}

/// A line of the file.
pub(super) struct Line {
    number: usize,
    dev_id: String,
    outcome: Outcome<Step>,
}

impl Done {
    pub(super) fn page(
        request: &InApplication,
        file: &ImportFile,
        lines: Vec<Line>,
        refused: usize,
    ) -> Result<Page<Self>> {
        let count = |is: fn(&Outcome<Step>) -> bool| lines.iter().filter(|line| is(&line.outcome)).count();
        let [created, updated, unchanged] = [
            count(|outcome| matches!(outcome, Outcome::Done(Step::Created))),
            count(|outcome| matches!(outcome, Outcome::Done(Step::Updated))),
            count(|outcome| matches!(outcome, Outcome::Done(Step::Unchanged))),
        ];
        let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let left = count(|outcome| matches!(outcome, Outcome::Left));
        let (done, not_done): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| matches!(line.outcome, Outcome::Done(_)));
        Ok(Page::new(Self {
            frame: request.frame.clone(),
            app_id: request.app_id().to_string(),
            tab: "devices",
            // What is left is planned again before it is confirmed.
            sealed: file.seal(request, &Plan::default())?,
            created,
            updated,
            unchanged,
            failed,
            left,
            refused,
            lines: not_done.into_iter().chain(done).collect(),
        }))
    }
}

impl Line {
    fn text(&self) -> &str {
        match &self.outcome {
            Outcome::Done(Step::Created) => "registered",
            Outcome::Done(Step::Updated) => "changed",
            Outcome::Done(Step::Unchanged) => "as it was",
            Outcome::Failed(reason) => reason,
            Outcome::Left => "not begun",
        }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Done(_))
    }
}

/// Sets the devices, some at the same time, until the time is over or no further one can be set.
pub(super) async fn run(request: &InApplication, handler: &HandlerClient, plan: Plan) -> Vec<Line> {
    let end = End::soon();
    let lines = stream::iter(plan.planned).map(|planned| line(request, handler, planned, &end));
    lines.buffered(PARALLEL).collect().await
}

async fn line(request: &InApplication, handler: &HandlerClient, planned: Planned, end: &End) -> Line {
    let outcome = match planned.step {
        Step::Unchanged => Outcome::Done(Step::Unchanged),
        step => end.before(async { set(request, handler, &planned).await.map(|()| step) }).await,
    };
    Line { number: planned.number, dev_id: planned.device.dev_id, outcome }
}

/// Sets a device as planned. What is stored is read just before a change: what the file does not change stays. A new
/// device was not there when the plan was made, and takes one call, because the handler limits them.
async fn set(request: &InApplication, handler: &HandlerClient, planned: &Planned) -> Result<()> {
    let device = match planned.step {
        Step::Created | Step::Unchanged => planned.device.clone(),
        Step::Updated => {
            let stored = read(handler, request.app_id(), &planned.device.dev_id.parse()?).await?;
            let renewed = planned.renew(stored);
            renewed.map_err(|field| Error::Invalid { what: field.name, must: field.reason })?
        }
    };
    Ok(handler.set_device(device.into()).await?)
}
