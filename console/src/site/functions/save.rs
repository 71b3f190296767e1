//! Saves functions: for all devices, or for a share of them first.

use api::version::{NewCandidate, NewVersion, Trial, Version};
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use client::handler::HandlerClient;

use super::{
    State, done,
    form::{FunctionsForm, percent},
    live, page,
};
use crate::{
    Result,
    site::{
        page::{Time, shown, shown_lines},
        viewer::InApplication,
    },
};

/// Somebody else saved a version since the form was opened.
pub(super) struct Conflict {
    pub(super) number: u32,
    pub(super) changed_by: String,
    pub(super) time: Time,
    pub(super) note: String,
    pub(super) diff: String,
}

/// Makes the functions live for all devices.
pub(super) async fn for_all(request: &InApplication, form: &FunctionsForm) -> Result<Response> {
    let handler = request.handler().await?;
    let live = live(request, &handler).await?;
    if live.number != form.base {
        return conflict(request, &handler, form, live).await;
    }
    let highest = handler.list_versions(request.app_id()).await?.into_iter().map(|version| version.number).max();
    let highest = highest.unwrap_or_default();
    let version = NewVersion { functions: Some(form.functions.clone()), note: form.note.clone(), link: String::new() };
    let saved = handler.create_version(version).await?;
    // A version that only a share of the devices had may be newer than the live one.
    let notice = match saved.number.saturating_sub(highest) {
        0 => "unchanged",
        1 => "saved",
        _ => "overtaken",
    };
    Ok(done(request, notice, &form.device))
}

/// Gives the functions to a share of the devices. They are compared with what is live, so that must be what it was.
pub(super) async fn for_share(request: &InApplication, form: &FunctionsForm) -> Result<Response> {
    let handler = request.handler().await?;
    let live = live(request, &handler).await?;
    if live.number != form.base {
        return conflict(request, &handler, form, live).await;
    }
    let app_id = request.app_id().to_string();
    let trial = Trial { app_id, share_percent: percent("share", &form.share)?, ..Trial::default() };
    let (functions, note) = (Some(form.functions.clone()), form.note.clone());
    handler.create_candidate(NewCandidate { functions, note, link: String::new(), trial: Some(trial) }).await?;
    Ok(done(request, "shared", &form.device))
}

/// Shows what somebody else changed, and what was typed. Saving again replaces it.
async fn conflict(
    request: &InApplication,
    handler: &HandlerClient,
    form: &FunctionsForm,
    live: Version,
) -> Result<Response> {
    let diff = handler.compare_versions(request.app_id(), form.base, live.number).await;
    let conflict = Conflict {
        number: live.number,
        changed_by: request.name(&live.changed_by),
        time: Time(live.time),
        note: shown(&live.note),
        // The version that the form began with may have been dropped.
        diff: diff.map(|diff| shown_lines(&diff)).unwrap_or_default(),
    };
    let form = FunctionsForm { base: live.number, ..form.clone() };
    let state = State { conflict: Some(conflict), ..State::default() };
    Ok(page(request, form, state).await.with_status(StatusCode::CONFLICT).into_response())
}
