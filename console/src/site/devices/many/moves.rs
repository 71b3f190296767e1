//! Moves many devices to another application, after a preview, and says how to move them back.

use std::collections::HashSet;

use askama::Template;
use axum::response::{IntoResponse, Response};
use client::handler::HandlerClient;
use futures::{StreamExt, stream};
use types::{AppId, DevId, DevicePath, Kind, Kinded};

use super::{Many, not_done, text};
use crate::{
    Error, Result,
    site::{
        device::fields::becomes_draft,
        devices::{
            find::{SEARCHED_MAX, Search},
            steps::{End, Outcome, PARALLEL, Shown, may_be_done},
        },
        failure::{Failure, Problem},
        page::{Frame, Page},
        viewer::{InApplication, Sent},
    },
};

#[derive(Template)]
#[template(path = "devices_move.html")]
struct MoveDevices {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    chosen: Many,
    destinations: Vec<AppId>,
    to: String,
    preview: Option<Preview>,
    problem: Option<Problem>,
    /// True if it was sent when the login had expired or a service was away.
    is_draft: bool,
}

#[derive(Template)]
#[template(path = "devices_moved.html")]
struct Moved {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    to: String,
    moved: usize,
    dropped: u64,
    /// The devices that were moved, or may have been without an answer.
    there: Vec<DevId>,
    /// The devices that were not moved, for the same form again.
    rest: Vec<DevId>,
    lines: Shown<(DevId, String)>,
}

/// Expectations of a move.
struct Preview {
    movable: Vec<DevId>,
    refused: usize,
    lines: Shown<(DevId, String)>,
}

impl Preview {
    fn text(&self) -> String {
        text(&self.movable)
    }
}

impl Moved {
    fn text(&self) -> String {
        text(&self.rest)
    }

    fn there_text(&self) -> String {
        text(&self.there)
    }
}

/// Asks for the application, shows what would be moved, and moves it.
pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let chosen = Many::named(&sent)?;
    match take_step(&request, &chosen, &sent).await {
        Ok(response) => Ok(response),
        Err(error) if becomes_draft(&error) || error.kind() == Kind::NotFound => Err(error.into()),
        Err(error) => {
            let status = server::status::http(error.kind());
            let mut page = page(&request, chosen, &sent).await?;
            page.template_mut().problem = Some(Problem::of(&error));
            Ok(page.with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) async fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let mut page = page(request, Many::named(sent)?, sent).await?;
    page.template_mut().is_draft = true;
    Ok(page.into_response())
}

async fn take_step(request: &InApplication, chosen: &Many, sent: &Sent) -> Result<Response> {
    let step = sent.value("step");
    if step.is_empty() {
        return Ok(page(request, chosen.clone(), sent).await?.into_response());
    }
    let must = || Error::Invalid { what: "Application", must: "must be one of the list".to_owned() };
    let to: AppId = sent.value("to").parse().map_err(|_| must())?;
    if to == *request.app_id() {
        return Err(must());
    }
    let handler = request.console.handler_of_both(&request.session, &request.access, &to).await?;
    if step == "move" {
        return Ok(move_all(request, &handler, chosen, &to).await.into_response());
    }
    let preview = preview(request, &handler, chosen, &to).await?;
    let mut page = page(request, chosen.clone(), sent).await?;
    page.template_mut().preview = Some(preview);
    Ok(page.into_response())
}

/// The devices that the other application can take, and why it cannot take the others.
async fn preview(request: &InApplication, handler: &HandlerClient, chosen: &Many, to: &AppId) -> Result<Preview> {
    let _turn = request.console.device_lists.take(&request.owner()).await;
    let everything = Search::default();
    let here: HashSet<_> = everything.all(handler, request.app_id(), SEARCHED_MAX).await?.into_iter().collect();
    let there: HashSet<_> = everything.all(handler, to, SEARCHED_MAX).await?.into_iter().collect();
    let reason = |dev_id: &DevId| match here.contains(dev_id.as_str()) {
        false => Some("it is not in this application any more".to_owned()),
        true => there.contains(dev_id.as_str()).then(|| format!("{to} has a device with this id already")),
    };
    let (mut movable, mut refused) = (Vec::new(), Vec::new());
    for dev_id in &chosen.ids {
        match reason(dev_id) {
            None => movable.push(dev_id.clone()),
            Some(reason) => refused.push((dev_id.clone(), reason)),
        }
    }
    Ok(Preview { movable, refused: refused.len(), lines: refused.into_iter().collect() })
}

/// Moves devices, some at the same time.
async fn move_all(request: &InApplication, handler: &HandlerClient, chosen: &Many, to: &AppId) -> Page<Moved> {
    let end = End::soon();
    let steps = stream::iter(chosen.ids.clone()).map(|dev_id| {
        let end = &end;
        async move {
            let mut may_be_there = false;
            let outcome = end.before(move_one(handler, (request.app_id(), to), &dev_id, &mut may_be_there)).await;
            (may_be_there.then(|| dev_id.clone()), (dev_id, outcome))
        }
    });
    let (there, outcomes): (Vec<_>, Vec<_>) = steps.buffered(PARALLEL).collect::<Vec<_>>().await.into_iter().unzip();
    let dropped = |(_, outcome): &(DevId, Outcome<u32>)| match outcome {
        Outcome::Done(dropped) => Some(u64::from(*dropped)),
        _ => None,
    };
    let (moved, dropped) = (outcomes.iter().filter_map(dropped).count(), outcomes.iter().filter_map(dropped).sum());
    let (rest, lines) = not_done(outcomes);
    let (frame, app_id, to) = (request.frame.clone(), request.app_id().to_string(), to.to_string());
    let there = there.into_iter().flatten().collect();
    Page::new(Moved { frame, app_id, tab: "devices", to, moved, dropped, there, rest, lines })
}

/// Moves a device, and returns how many of its downlinks were dropped. `may_be_there` also if the answer was lost.
async fn move_one(
    handler: &HandlerClient,
    (from, to): (&AppId, &AppId),
    dev_id: &DevId,
    may_be_there: &mut bool,
) -> Result<u32> {
    let moved = handler.move_device(DevicePath { app_id: from, dev_id }, DevicePath { app_id: to, dev_id }).await;
    *may_be_there = match &moved {
        Ok(_) => true,
        // A device that moves already may do so for this form, sent twice.
        Err(error) => error.kind() == Kind::Conflict || may_be_done(error),
    };
    moved.map(|moved| moved.dropped_downlinks).map_err(|error| Error::hiding("device", error))
}

async fn page(request: &InApplication, chosen: Many, sent: &Sent) -> Result<Page<MoveDevices>> {
    let destinations = request.console.destinations(&request.session, request.app_id()).await?;
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    let to = sent.value("to").to_owned();
    let (tab, preview, problem, is_draft) = ("devices", None, None, false);
    Ok(Page::new(MoveDevices { frame, app_id, tab, chosen, destinations, to, preview, problem, is_draft }))
}
