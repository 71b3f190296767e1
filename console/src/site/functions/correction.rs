//! Stored results that the live functions would not give are corrected: previewed or kept, in parts that follow each
//! other.

use api::rest::handler::{DecodeAgain, DecodeReport, Verdicts};
use askama::Template;
use axum::response::{IntoResponse, Response};
use types::{Kinded, Timestamp};

use super::{
    comparison::{FailureRow, failure_rows},
    examined::counts,
    live,
};
use crate::{
    Error, Result,
    functions::{comparison::PER_DEVICE, correction::CorrectedPart, trial::Verdict},
    messages::history::time,
    site::{
        device::fields::becomes_draft,
        failure::{Failure, Problem},
        page::{Frame, Page, grouped},
        viewer::{InApplication, Sent},
    },
};

/// The notices of pages that are shown when other functions have gone live.
const NOTICES: [&str; 4] = ["saved", "overtaken", "restored", "promoted"];

/// Stored results that functions would not give which have just gone live.
pub(super) struct Differing {
    /// The number of such uplinks among the last ones of each device.
    pub(super) uplinks: u64,
    pub(super) per_device: u32,
}

#[derive(Template)]
#[template(path = "correction.html")]
pub(in crate::site) struct CorrectionPage {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    form: CorrectionForm,
    problem: Option<Problem>,
    done: Option<PartView>,
    /// True if the form was sent when the login had expired or a service was away.
    is_draft: bool,
}

/// Which uplinks are corrected, and how far that is.
#[derive(Clone, Default)]
struct CorrectionForm {
    /// The version whose functions run; zero if none is live.
    version: u32,
    /// A device, or empty for all.
    device: String,
    /// A time, or how long ago; empty for all that is stored.
    since: String,
    is_published: bool,
    /// True to show what would change, and change nothing.
    is_preview: bool,
    /// The uplink after which the next part begins; empty before the first part.
    after: String,
    progress: Progress,
}

/// The sums of all parts.
#[derive(Clone, Copy, Default)]
struct Progress {
    examined: u64,
    /// Those that were kept, or with a preview, that would be.
    corrected: u64,
    newly_failing: u64,
    published: u64,
}

/// The result of a part.
struct PartView {
    examined: u64,
    counts: Vec<(u64, Verdict)>,
    already_corrected: u64,
    failures: Vec<FailureRow>,
    /// The reason why some corrections did not arrive everywhere.
    refusals: Vec<String>,
    unwanted: u64,
    unreadable: Vec<String>,
    is_last: bool,
    stopped: String,
}

impl Differing {
    /// Looks for such results after functions have gone live; none if there are none, or if nobody can say in time.
    pub(super) async fn after(request: &InApplication, notice: &str, live: u32) -> Option<Self> {
        if live == 0 || !NOTICES.contains(&notice) {
            return None;
        }
        let uplinks = request.console.count_differing(&request.access, live).await.ok().filter(|count| *count > 0)?;
        Some(Self { uplinks, per_device: PER_DEVICE })
    }
}

impl CorrectionPage {
    /// True if the next part follows by itself.
    fn goes_on(&self) -> bool {
        self.done.as_ref().is_some_and(|done| !done.is_last && done.stopped.is_empty())
    }

    /// True if there is a part to go on with, also after a login or an outage, rather than something to begin.
    fn has_rest(&self) -> bool {
        self.done.as_ref().map_or(!self.form.after.is_empty(), |done| !done.is_last)
    }

    /// True if there was a part before the last one.
    fn has_parts(&self) -> bool {
        self.done.as_ref().is_some_and(|done| done.examined < self.form.progress.examined)
    }

    fn state(&self) -> &'static str {
        match (&self.done, self.form.is_preview) {
            (Some(done), _) if !done.stopped.is_empty() => "Stopped",
            (Some(done), true) if done.is_last => "Preview",
            (Some(done), false) if done.is_last => "Corrected",
            (None, _) => "Stopped",
            (_, true) => "Previewing…",
            (_, false) => "Correcting…",
        }
    }

    /// The sums of all parts, in words.
    fn sums(&self) -> String {
        let Progress { examined, corrected, newly_failing, published } = self.form.progress;
        let uplinks = if examined == 1 { "uplink" } else { "uplinks" };
        let verb = if self.form.is_preview { "would be corrected" } else { "corrected" };
        let mut sums = format!("{} {uplinks} examined: {} {verb}", grouped(examined), grouped(corrected));
        if self.form.is_published && !self.form.is_preview {
            sums += &format!(", {} of them published", grouped(published));
        }
        if newly_failing > 0 {
            sums += &format!("; {} would newly fail", grouped(newly_failing));
        }
        sums + "."
    }
}

impl CorrectionForm {
    fn of(sent: &Sent) -> Self {
        let text = |name: &str| sent.value(name).trim().to_owned();
        Self {
            version: sent.value("version").parse().unwrap_or_default(),
            device: text("device"),
            since: text("since"),
            is_published: !sent.value("publish").is_empty(),
            is_preview: sent.value("do") != "correct",
            after: text("after"),
            progress: Progress::of(sent),
        }
    }

    fn body(&self, request: &InApplication) -> Result<DecodeAgain> {
        Ok(DecodeAgain {
            dev_id: self.device.clone(),
            since: time("since", &self.since, request.console.clock.now())?,
            version: self.version,
            write: !self.is_preview,
            publish: self.is_published && !self.is_preview,
            after: self.after.clone(),
            ..DecodeAgain::default()
        })
    }
}

impl Progress {
    /// That of the parts before, as their pages had it.
    fn of(sent: &Sent) -> Self {
        let number = |name: &str| sent.value(name).parse().unwrap_or_default();
        Self {
            examined: number("examined"),
            corrected: number("corrected"),
            newly_failing: number("newly_failing"),
            published: number("published"),
        }
    }

    fn with(self, found: &DecodeReport) -> Self {
        let Verdicts { changed, newly_decoded, newly_failing, .. } = found.verdicts;
        Self {
            examined: self.examined.saturating_add(found.examined),
            corrected: self.corrected.saturating_add(changed + newly_decoded),
            newly_failing: self.newly_failing.saturating_add(newly_failing),
            published: self.published.saturating_add(found.published),
        }
    }
}

impl PartView {
    fn new(part: CorrectedPart) -> Self {
        let CorrectedPart { found, is_last, stopped, .. } = part;
        let refusals = found.receivers.into_iter();
        let refusals =
            refusals.map(|(receiver, refused)| format!("{receiver}: {} ({})", refused.reason, refused.count));
        Self {
            examined: found.examined,
            counts: counts(&found.verdicts),
            already_corrected: found.verdicts.already_corrected,
            failures: failure_rows(found.failures),
            refusals: refusals.collect(),
            unwanted: found.unwanted,
            unreadable: found.unreadable_files.into_iter().collect(),
            is_last,
            stopped,
        }
    }
}

pub(in crate::site) async fn show(request: InApplication) -> Result<Page<CorrectionPage>, Failure> {
    let version = live(&request, &request.handler().await?).await?.number;
    let form = CorrectionForm { version, is_published: true, ..CorrectionForm::default() };
    Ok(Page::new(page(&request, form)))
}

/// Corrects the next part, or shows what that would change.
pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let form = CorrectionForm::of(&sent);
    let part = match form.body(&request) {
        Ok(body) => request.console.correct_part(&request.access, &body).await.map(|part| (part, body.since)),
        Err(error) => Err(error),
    };
    match part {
        Ok((part, since)) => {
            let (after, progress) = (part.next.clone(), form.progress.with(&part.found));
            // How long ago means the same in all parts.
            let since = since.filter(|_| !part.is_last).map_or(form.since, Timestamp::to_rfc3339);
            let form = CorrectionForm { after, since, progress, ..form };
            let done = Some(PartView::new(part));
            Ok(Page::new(CorrectionPage { done, ..page(&request, form) }).into_response())
        }
        Err(error) if becomes_draft(&error) => Err(error.into()),
        Err(error) => Ok(refused(&request, form, &error)),
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) fn draft(request: &InApplication, sent: &Sent) -> Response {
    Page::new(CorrectionPage { is_draft: true, ..page(request, CorrectionForm::of(sent)) }).into_response()
}

fn refused(request: &InApplication, form: CorrectionForm, error: &Error) -> Response {
    let problem = Some(Problem::of(error));
    let page = Page::new(CorrectionPage { problem, ..page(request, form) });
    page.with_status(server::status::http(error.kind())).into_response()
}

fn page(request: &InApplication, form: CorrectionForm) -> CorrectionPage {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    CorrectionPage { frame, app_id, tab: "functions", form, problem: None, done: None, is_draft: false }
}
