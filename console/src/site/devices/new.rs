//! Registers a device. A form that is sent again, because its answer was lost, shows what was generated the first
//! time, unless the device was deleted since.

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use types::{AppEui, Kind, Kinded};

use super::steps::may_be_done;
use crate::{
    Error, Result,
    form::device::{DeviceEntry, Draw},
    site::{
        device::{
            fields::{DeviceForm, becomes_draft},
            generated::{self, Done},
        },
        failure::Failure,
        page::{Frame, Page},
        viewer::{InApplication, Sent},
    },
};

#[derive(Template)]
#[template(path = "device_new.html")]
pub(in crate::site) struct New {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    form: DeviceForm,
}

pub(in crate::site) async fn show(request: InApplication) -> Page<New> {
    page(&request, DeviceForm::empty(request.console.draw("")))
}

/// Registers a device. Whether one with this id is there already is checked just before.
pub(in crate::site) async fn create(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let mut entry = DeviceEntry::sent(|name| sent.value(name));
    let draw = request.console.draw(sent.value("draw"));
    match register(&request, &mut entry, &draw).await {
        Ok(response) => Ok(response),
        Err(error) if becomes_draft(&error) => Err(error.into()),
        Err(error) => {
            let status = server::status::http(error.kind());
            let is_used = matches!(error, Error::DeviceDeleted(_));
            let draw = if is_used { request.console.draw("") } else { draw };
            let form = DeviceForm::sent(&entry, None, draw).refused(&error);
            Ok(page(&request, form).with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) fn draft(request: &InApplication, sent: &Sent) -> Response {
    let (entry, draw) = (DeviceEntry::sent(|name| sent.value(name)), request.console.draw(sent.value("draw")));
    page(request, DeviceForm::sent(&entry, None, draw).drafted()).into_response()
}

async fn register(request: &InApplication, entry: &mut DeviceEntry, draw: &Draw) -> Result<Response> {
    let dev_id = entry.dev_id()?;
    entry.read_code()?;
    let (handler, drawn) = (request.handler().await?, request.drawn(draw, &dev_id));
    let (registrations, now) = (&request.console.registrations, request.console.clock.now());
    match handler.get_device(request.app_id(), &dev_id).await {
        Ok(stored) => {
            let generated = entry.generated_before(&stored.try_into()?, &drawn);
            let generated = generated.ok_or_else(|| Error::DeviceExists(dev_id.clone()))?;
            registrations.note(request.user_id(), drawn.form(), now);
            return Ok(generated::page(request, &dev_id, generated, Done::Before { is_new: true }).into_response());
        }
        Err(error) if error.kind() == Kind::NotFound && registrations.contain(drawn.form(), now) => {
            return Err(Error::DeviceDeleted(dev_id));
        }
        Err(error) if error.kind() == Kind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    if entry.texts.get("app_eui").is_empty() {
        entry.texts.set("app_eui", app_eui(request).await?.to_hex());
    }
    let (device, new) = entry.new_device(request.app_id(), &handler, &drawn).await?;
    let set = handler.set_device(device.into()).await;
    if has_registered(&set) {
        registrations.note(request.user_id(), drawn.form(), now);
    }
    set?;
    if new.is_empty() {
        let path = format!("{}/devices/{dev_id}?done=device-registered", request.path());
        return Ok(Redirect::to(&path).into_response());
    }
    Ok(generated::page(request, &dev_id, new, Done::Registered).into_response())
}

/// Returns true also if nobody knows, because the answer was lost, or because the store of the handler failed: it may have
/// kept the device before.
fn has_registered(set: &client::Result<()>) -> bool {
    match set {
        Ok(()) => true,
        Err(error) => may_be_done(error),
    }
}

/// The first EUI of the application; zero if it has none.
pub(super) async fn app_eui(request: &InApplication) -> Result<AppEui> {
    let account = &request.console.account;
    let application = account.application(&request.access.credential, request.app_id()).await;
    Ok(application.map_err(Error::of_account)?.euis.first().copied().unwrap_or_default())
}

fn page(request: &InApplication, form: DeviceForm) -> Page<New> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Page::new(New { frame, app_id, tab: "devices", form })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_an_answer_may_have_registered_a_device() {
        let refused = |kind| client::Error::Refused { kind, message: String::new(), retry_after: None };
        let lost = client::Error::Timeout { service: "handler", address: String::new() };
        let all = [Ok(()), Err(lost), Err(refused(Kind::Timeout)), Err(refused(Kind::Invalid))];
        assert_eq!(all.map(|set| has_registered(&set)), [true, true, true, false]);
        // The store failed after it had kept the device, or before.
        assert_eq!([Kind::Unavailable, Kind::Internal].map(|kind| has_registered(&Err(refused(kind)))), [true, true]);
        let (service, address, source) = ("handler", String::new(), "refused".into());
        assert!(!has_registered(&Err(client::Error::Unreachable { service, address, source })), "nothing was reached");
    }
}
