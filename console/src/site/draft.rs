//! Forms that were sent when the login had expired: kept until the user is back.

use axum::{
    extract::{FromRequest, FromRequestParts, Path, Request, State},
    http::Uri,
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};

use super::{
    device::downlinks,
    failure::Failure,
    functions, login,
    viewer::{InApplication, MaybeViewer, Sent, Viewer},
};
use crate::{Console, Error, Result};

/// Keeps the form of a user whose session has expired, and sends them to the login.
pub(super) async fn keep_drafts(
    State(console): State<Console>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    if request.method().is_safe() {
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = request.into_parts();
    let Ok(viewer) = MaybeViewer::from_request_parts(&mut parts, &console).await;
    let path = parts.uri.path().to_owned();
    let request = Request::from_parts(parts, body);
    let Some(session) = viewer.expired() else { return Ok(next.run(request).await) };
    let Sent(fields) = Sent::from_request(request, &console).await?;
    let now = console.clock.now();
    let id = console.drafts.keep(&session.user_id, (path, fields), now, console.random.as_ref());
    Ok(Redirect::to(&login::path(&format!("/console/drafts/{id}"))).into_response())
}

/// Shows the form again, as it was sent. Nothing has been done with it yet.
pub(super) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let found = console.drafts.find(&id, &viewer.session.user_id, console.clock.now());
    let (path, fields) = found.ok_or(Error::NotFound("draft"))?;
    let (app_id, rest) = parts(&path).ok_or(Error::NotFound("draft"))?;
    let access = console.access(&viewer.session, app_id.parse()?).await?;
    let request = InApplication::of_draft(console.clone(), (viewer, access), rest);
    match rest {
        "functions" => functions::draft(&request, &Sent(fields)).await,
        rest if rest.ends_with("/downlinks") => downlinks::draft(&request, &Sent(fields)).await,
        // Other forms have nothing that was typed.
        _ => Ok(Redirect::to(&request.path()).into_response()),
    }
}

/// The application and the rest of a path below it.
fn parts(path: &str) -> Option<(&str, &str)> {
    let path: &str = path.split('?').next()?;
    path.parse::<Uri>().ok()?;
    path.strip_prefix("/console/applications/")?.split_once('/')
}
