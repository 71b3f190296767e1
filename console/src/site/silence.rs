//! The time after which the devices of an application count as silent.

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use client::silence::SilenceClient;
use types::{InvalidSilentAfter, Kinded, SilentAfter};

use super::{
    device::fields::becomes_draft,
    failure::{Failure, Problem},
    page::{Frame, Page},
    viewer::{InApplication, Sent},
};
use crate::{Error, Result};

#[derive(Template)]
#[template(path = "silence.html")]
pub(super) struct Silence {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    /// The time, or what was typed; empty for never.
    after: String,
    problem: Option<Problem>,
    /// True if the form was sent when the login had expired or a service was away.
    is_draft: bool,
}

pub(super) async fn show(request: InApplication) -> Result<Page<Silence>, Failure> {
    let after = client(&request).await?.get().await?;
    Ok(Page::new(page(&request, after.map(|after| after.to_string()).unwrap_or_default())))
}

pub(super) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let typed = sent.value("after").trim();
    match set(&request, typed).await {
        Ok(()) => Ok(Redirect::to(&format!("{}/silence?done=silence-set", request.path())).into_response()),
        Err(error) if becomes_draft(&error) => Err(error.into()),
        Err(error) => {
            let problem = Some(Problem::of(&error));
            let page = Page::new(Silence { problem, ..page(&request, typed.to_owned()) });
            Ok(page.with_status(server::status::http(error.kind())).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(super) fn draft(request: &InApplication, sent: &Sent) -> Response {
    let typed = sent.value("after").trim().to_owned();
    Page::new(Silence { is_draft: true, ..page(request, typed) }).into_response()
}

async fn set(request: &InApplication, typed: &str) -> Result<()> {
    let after = match typed {
        "" => None,
        typed => SilentAfter::parse_or_off(typed).map_err(|error| invalid(&error))?,
    };
    Ok(client(request).await?.set(after).await?)
}

fn invalid(error: &InvalidSilentAfter) -> Error {
    Error::Invalid { what: "Time", must: error.to_string() }
}

async fn client(request: &InApplication) -> Result<SilenceClient> {
    request.console.silence(&request.access).await?.ok_or(Error::NotServed)
}

fn page(request: &InApplication, after: String) -> Silence {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Silence { frame, app_id, tab: "devices", after, problem: None, is_draft: false }
}
