//! The page that says what became of a deletion, and brings devices back.
//!
//! It has an address, at which its user finds it for an hour: the console keeps the devices with their keys and counters,
//! sealed. What brings them back is an import, with its preview.

use api::rest::handler::Device;
use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use device_file::Plan;
use types::DevId;

use super::text;
use crate::{
    Error, Result,
    form::drafts::Fields,
    site::{
        devices::{import::file::ImportFile, steps::Shown},
        failure::Failure,
        page::{Frame, Page, Time},
        viewer::{InApplication, Sent},
    },
};

#[derive(Template)]
#[template(path = "devices_deleted.html")]
pub(in crate::site) struct Deleted {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    deleted: usize,
    /// Number of devices that were deleted, or may have been without an answer.
    gone: usize,
    /// Those devices, sealed; none if they are too many.
    sealed: Option<String>,
    /// The devices that were not deleted, for the same form again.
    rest: Vec<DevId>,
    lines: Shown<(DevId, String)>,
}

/// A deletion that can be undone, in the table of devices.
pub(in crate::site::devices) struct Deletion {
    pub(in crate::site::devices) path: String,
    pub(in crate::site::devices) time: Time,
    /// Number of devices that it would bring back.
    pub(in crate::site::devices) gone: String,
}

/// The page of a deletion, or the way to its address if it can bring devices back. `gone` are devices that were deleted,
/// or may have been without an answer.
pub(super) fn answer(
    request: &InApplication,
    (deleted, gone): (usize, &[Device]),
    (rest, lines): (Vec<DevId>, Shown<(DevId, String)>),
) -> Result<Response> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    let page = Deleted { frame, app_id, tab: "devices", deleted, gone: gone.len(), sealed: None, rest, lines };
    let file = Some(gone).filter(|gone| !gone.is_empty()).and_then(|gone| ImportFile::of(request, gone));
    let Some(file) = file else { return Ok(Page::new(page).into_response()) };
    let (console, path) = (&request.console, path(request));
    let kept = [page.fields(), vec![("sealed".to_owned(), file.seal(request, &Plan::default())?), file.mark(request)]];
    let form = (path.clone(), kept.concat());
    let id = console.deletions.keep(request.user_id(), form, console.clock.now(), console.random.as_ref());
    Ok(Redirect::to(&format!("{path}/{id}")).into_response())
}

pub(in crate::site) async fn show(request: InApplication) -> Result<Page<Deleted>, Failure> {
    let console = &request.console;
    let found = console.deletions.find(request.parameter("deletion"), request.user_id(), console.clock.now());
    let fields = found.filter(|(known, _)| *known == path(&request)).map(|(_, fields)| fields);
    let kept = fields.ok_or(Error::NotFound("deletion that can be undone"))?;
    Ok(Page::new(Deleted::kept(&request, &Sent(kept))))
}

/// The deletions of the application that the viewer can undo, the newest first.
pub(in crate::site::devices) fn deletions(request: &InApplication) -> Vec<Deletion> {
    let (console, path) = (&request.console, path(request));
    console.deletions.of_path(&path, request.user_id(), console.clock.now(), |id, fields, time| Deletion {
        path: format!("{path}/{id}"),
        time: Time(time.as_nanos()),
        gone: fields.iter().find(|(name, _)| name == "gone").map(|(_, gone)| gone.clone()).unwrap_or_default(),
    })
}

/// The path below which the pages of deletions are.
fn path(request: &InApplication) -> String {
    format!("{}/deleted-devices", request.path())
}

impl Deleted {
    /// The fields that the console keeps of it, beside the devices.
    fn fields(&self) -> Fields {
        let facts = [("deleted", self.deleted.to_string()), ("gone", self.gone.to_string()), ("ids", self.text())];
        let lines = self.lines.rows.iter().map(|(dev_id, reason)| ("line", format!("{dev_id} {reason}")));
        facts.into_iter().chain(lines).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn kept(request: &InApplication, kept: &Sent) -> Self {
        let number = |name| kept.value(name).parse::<usize>().unwrap_or_default();
        let rest: Vec<DevId> = kept.value("ids").split_whitespace().filter_map(|id| id.parse().ok()).collect();
        let line = |line: &str| {
            line.split_once(' ').and_then(|(id, reason)| Some((id.parse::<DevId>().ok()?, reason.to_owned())))
        };
        let rows: Vec<_> = kept.values("line").filter_map(line).collect();
        Self {
            frame: request.frame.clone(),
            app_id: request.app_id().to_string(),
            tab: "devices",
            deleted: number("deleted"),
            gone: number("gone"),
            sealed: Some(kept.value("sealed").to_owned()),
            lines: Shown { more: rest.len().saturating_sub(rows.len()), rows },
            rest,
        }
    }

    fn text(&self) -> String {
        text(&self.rest)
    }
}
