//! Changes a device, unless somebody else has changed it since the form was opened.

use askama::Template;
use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use types::Kinded;

use super::{
    dev_id,
    fields::{DeviceForm, becomes_draft},
    generated::{self, Done},
};
use crate::{
    Result,
    form::device::{Base, DeviceEntry, Draw, read},
    site::{
        failure::Failure,
        page::{Frame, Page},
        viewer::{InApplication, Sent},
    },
};

#[derive(Template)]
#[template(path = "device_change.html")]
pub(in crate::site) struct Change {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    dev_id: String,
    form: DeviceForm,
}

pub(in crate::site) async fn show(request: InApplication) -> Result<Page<Change>, Failure> {
    let handler = request.handler().await?;
    let device = read(&handler, request.app_id(), &dev_id(&request)?).await?;
    Ok(page(&request, DeviceForm::opened(request.console.base_of(&device), request.console.draw("")))?)
}

pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let (entry, base, draw) = typed(&request, &sent);
    match change(&request, entry.clone(), (&base, &draw)).await {
        Ok(response) => Ok(response),
        Err(error) if becomes_draft(&error) => Err(error.into()),
        Err(error) => {
            let status = server::status::http(error.kind());
            let form = DeviceForm::sent(&entry, Some(base), draw).refused(&error);
            Ok(page(&request, form)?.with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let (entry, base, draw) = typed(request, sent);
    Ok(page(request, DeviceForm::sent(&entry, Some(base), draw).drafted())?.into_response())
}

fn typed(request: &InApplication, sent: &Sent) -> (DeviceEntry, Base, Draw) {
    let entry = DeviceEntry::sent(|name| sent.value(name));
    (entry, Base::read(sent.value("base")), request.console.draw(sent.value("draw")))
}

/// The handler takes whatever is sent last, so that what it has is looked at just before.
async fn change(request: &InApplication, mut entry: DeviceEntry, (base, draw): (&Base, &Draw)) -> Result<Response> {
    let (handler, dev_id) = (request.handler().await?, dev_id(request)?);
    let drawn = request.drawn(draw, &dev_id);
    let mut device = read(&handler, request.app_id(), &dev_id).await?;
    if let Some(generated) = entry.generated_before(&device, &drawn) {
        return Ok(generated::page(request, &dev_id, generated, Done::Before { is_new: false }).into_response());
    }
    let now = request.console.base_of(&device);
    let differences = base.differences(&now, &entry.texts);
    entry.texts = base.merge(&now, entry.texts);
    if !differences.is_empty() {
        // Keys that somebody else has replaced meanwhile must not come back.
        let form = DeviceForm::sent(&entry, Some(now), request.console.draw("")).differing(differences);
        return Ok(page(request, form)?.with_status(StatusCode::CONFLICT).into_response());
    }
    let new = entry.change(&mut device, &handler, &drawn).await?;
    handler.set_device(device.into()).await?;
    if new.is_empty() {
        let path = format!("{}/devices/{dev_id}?done=device-changed", request.path());
        return Ok(Redirect::to(&path).into_response());
    }
    Ok(generated::page(request, &dev_id, new, Done::Changed).into_response())
}

fn page(request: &InApplication, form: DeviceForm) -> Result<Page<Change>> {
    let (frame, app_id, dev_id) = (request.frame.clone(), request.app_id().to_string(), dev_id(request)?.to_string());
    Ok(Page::new(Change { frame, app_id, tab: "devices", dev_id, form }))
}
