//! Imports devices: a page that takes a file, one that shows what it would do, and one that says what it did.
//!
//! Nothing is set before somebody has seen what it would be. The file may have keys, so pages bring it back sealed.

pub(super) mod file;
mod preview;
mod run;

use api::rest::handler::Device;
use askama::Template;
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use client::handler::HandlerClient;
use device_file::{Allowed, Plan, plan};
use types::{Kind, Kinded};

use self::{
    file::{FILE_BYTES_MAX, ImportFile, ROWS_MAX},
    preview::{Note, Preview},
    run::{Done, Line, run},
};
use super::{find::all, new::app_eui};
use crate::{
    Result,
    site::{
        FORM_BYTES_MAX,
        device::fields::becomes_draft,
        failure::{Failure, Problem},
        page::{Frame, Page, grouped},
        viewer::{InApplication, Sent},
    },
};

#[derive(Template)]
#[template(path = "device_import.html")]
pub(in crate::site) struct Import {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    is_override: bool,
    problem: Option<Problem>,
    /// True if it was sent when the login had expired or a service was away.
    is_draft: bool,
}

impl Import {
    fn bytes_max(&self) -> usize {
        FILE_BYTES_MAX
    }

    /// Maximum size of the file as forms are sent, with the box beside it.
    fn sent_bytes_max(&self) -> usize {
        FORM_BYTES_MAX - "&override=yes".len()
    }

    fn rows_max(&self) -> String {
        grouped(ROWS_MAX as u64)
    }
}

pub(in crate::site) async fn show(request: InApplication) -> Page<Import> {
    page(&request, false, None)
}

pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    match import(&request, &sent).await {
        Ok(response) => Ok(response),
        Err(error) if becomes_draft(&error) || error.kind() == Kind::NotFound => Err(error.into()),
        Err(error) => {
            let status = server::status::http(error.kind());
            let page = page(&request, is_override(&sent), Some(Problem::of(&error)));
            Ok(page.with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away. A file that was not sealed is
/// not kept.
pub(in crate::site) async fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    if let Ok(file) = ImportFile::sealed(request, sent.value("sealed")) {
        let handler = request.handler().await?;
        let plan = planned(request, &handler, &file).await?;
        return Ok(Preview::page(request, &file, &plan, Note::Draft)?.into_response());
    }
    let mut page = page(request, is_override(sent), None);
    page.template_mut().is_draft = true;
    Ok(page.into_response())
}

async fn import(request: &InApplication, sent: &Sent) -> Result<Response> {
    let (file, is_confirmed) = match sent.value("sealed") {
        "" => (ImportFile::typed(request, sent.value("devices"), is_override(sent))?, false),
        sealed => (ImportFile::sealed(request, sealed)?, sent.value("step") == "import"),
    };
    let handler = request.handler().await?;
    let plan = planned(request, &handler, &file).await?;
    if !is_confirmed {
        return Ok(Preview::page(request, &file, &plan, Note::New)?.into_response());
    }
    let (registrations, now) = (&request.console.registrations, request.console.clock.now());
    let form = file.form(request);
    // A second send must not bring back what was deleted since, and a first one does what somebody has seen.
    let note = match registrations.contain(&form, now) {
        true => Note::Repeated,
        false if !file.promises(request, &plan) => Note::Changed,
        false if !registrations.begin(request.user_id(), &form, now) => Note::Repeated,
        false => {
            let refused = plan.bad.len();
            let lines = run(request, &handler, plan).await;
            if refused == 0 && lines.iter().all(Line::is_done) {
                request.console.deletions.forget(request.user_id(), &file.mark(request));
            }
            return Ok(Done::page(request, &file, lines, refused)?.into_response());
        }
    };
    Ok(Preview::page(request, &file, &plan, note)?.with_status(StatusCode::CONFLICT).into_response())
}

/// Plans the import anew.
async fn planned(request: &InApplication, handler: &HandlerClient, file: &ImportFile) -> Result<Plan> {
    let _turn = request.console.device_lists.take(&request.owner()).await;
    let rows = file.rows()?;
    let listed = all(handler, request.app_id()).await?;
    let registered = listed.into_iter().map(Device::try_from).collect::<Result<Vec<_>, _>>()?;
    let advice = "tick the box that allows it if the device has the new ones";
    let allowed = if file.is_override { Allowed::All } else { Allowed::NoIdentity(advice) };
    Ok(plan(rows, registered, (request.app_id(), app_eui(request).await?), allowed))
}

fn page(request: &InApplication, is_override: bool, problem: Option<Problem>) -> Page<Import> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Page::new(Import { frame, app_id, tab: "devices", is_override, problem, is_draft: false })
}

fn is_override(sent: &Sent) -> bool {
    !sent.value("override").is_empty()
}
