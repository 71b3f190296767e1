//! Deletes many devices, after somebody has typed how many, and says how to bring them back.
//!
//! The page that says so has the devices, with their keys and counters, sealed; the console keeps nothing. What brings
//! them back is an import, with its preview.

use api::rest::handler::Device;
use askama::Template;
use axum::response::{IntoResponse, Response};
use client::handler::HandlerClient;
use device_file::Plan;
use futures::{StreamExt, stream};
use types::{DevId, Kind, Kinded};

use super::{Many, not_done, text};
use crate::{
    Error, Result,
    form::device::read,
    site::{
        device::fields::becomes_draft,
        devices::{
            import::file::ImportFile,
            steps::{End, Outcome, PARALLEL, Shown},
        },
        failure::{Failure, Problem},
        page::{Frame, Page},
        viewer::{InApplication, Sent},
    },
};

#[derive(Template)]
#[template(path = "devices_delete.html")]
struct Delete {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    chosen: Many,
    problem: Option<Problem>,
    /// Whether it was sent when the login had expired or a service was away.
    is_draft: bool,
}

#[derive(Template)]
#[template(path = "devices_deleted.html")]
pub(in crate::site) struct Deleted {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    deleted: usize,
    /// The deleted devices, sealed; none if they are too many.
    sealed: Option<String>,
    /// The devices that were not deleted, for the same form again.
    rest: Vec<DevId>,
    lines: Shown<(DevId, String)>,
}

impl Deleted {
    fn text(&self) -> String {
        text(&self.rest)
    }
}

/// Asks, and deletes once the number of devices is typed.
pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let chosen = Many::named(&sent)?;
    if sent.value("step") != "delete" {
        return Ok(page(&request, chosen, None).into_response());
    }
    match delete_typed(&request, &chosen, sent.value("count").trim()).await {
        Ok(page) => Ok(page.into_response()),
        Err(error) if becomes_draft(&error) || error.kind() == Kind::NotFound => Err(error.into()),
        Err(error) => {
            let status = server::status::http(error.kind());
            Ok(page(&request, chosen, Some(Problem::of(&error))).with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let mut page = page(request, Many::named(sent)?, None);
    page.template_mut().is_draft = true;
    Ok(page.into_response())
}

async fn delete_typed(request: &InApplication, chosen: &Many, typed: &str) -> Result<Page<Deleted>> {
    if typed.parse::<usize>().ok() != Some(chosen.count()) {
        return Err(Error::Invalid { what: "Number of devices", must: format!("must be {}", chosen.count()) });
    }
    delete(request, &request.handler().await?, chosen.ids.clone()).await
}

/// Deletes devices, some at the same time.
pub(in crate::site) async fn delete(
    request: &InApplication,
    handler: &HandlerClient,
    ids: Vec<DevId>,
) -> Result<Page<Deleted>> {
    let end = End::soon();
    let steps = stream::iter(ids).map(|dev_id| {
        let end = &end;
        async move {
            let outcome = end.before(delete_one(request, handler, &dev_id)).await;
            (dev_id, outcome)
        }
    });
    let outcomes: Vec<_> = steps.buffered(PARALLEL).collect().await;
    let devices: Vec<Device> = outcomes.iter().filter_map(|(_, outcome)| done(outcome)).cloned().collect();
    let file =
        Some(&devices).filter(|devices| !devices.is_empty()).and_then(|devices| ImportFile::of(request, devices));
    let sealed = file.map(|file| file.seal(request, &Plan::default())).transpose()?;
    let (rest, lines) = not_done(outcomes);
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Ok(Page::new(Deleted { frame, app_id, tab: "devices", deleted: devices.len(), sealed, rest, lines }))
}

/// The device as it was just before.
async fn delete_one(request: &InApplication, handler: &HandlerClient, dev_id: &DevId) -> Result<Device> {
    let device = read(handler, request.app_id(), dev_id).await?;
    let deleted = handler.delete_device(request.app_id(), dev_id).await;
    deleted.map_err(|error| Error::hiding("device", error))?;
    Ok(device)
}

fn done(outcome: &Outcome<Device>) -> Option<&Device> {
    match outcome {
        Outcome::Done(device) => Some(device),
        _ => None,
    }
}

fn page(request: &InApplication, chosen: Many, problem: Option<Problem>) -> Page<Delete> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Page::new(Delete { frame, app_id, tab: "devices", chosen, problem, is_draft: false })
}
