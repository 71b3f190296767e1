//! Downlinks to a device, by bytes or by fields.

use api::downlink::Downlink;
use axum::response::{IntoResponse, Response};

use super::{
    dev_id, done,
    form::{DownlinkForm, Forms, bytes, invalid},
    page, refused,
};
use crate::site::{
    failure::Failure,
    viewer::{InApplication, Sent},
};
use crate::{Error, Result};

pub(in crate::site) async fn schedule(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let downlink = DownlinkForm::of(&sent);
    match send(&request, &downlink).await {
        Ok(()) => Ok(done(&request, "scheduled")),
        Err(Error::LoggedOut) => Err(Error::LoggedOut.into()),
        Err(error) => refused(&request, Forms { downlink, refused_field: "payload", ..Forms::default() }, &error).await,
    }
}

/// Empties the queue.
pub(in crate::site) async fn clear(request: InApplication) -> Result<Response, Failure> {
    let dev_id = dev_id(&request)?;
    request.handler().await?.clear_downlinks(request.app_id(), &dev_id).await?;
    Ok(done(&request, "cleared"))
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) async fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let downlink = DownlinkForm { is_draft: true, ..DownlinkForm::of(sent) };
    Ok(page(request, Forms { downlink, ..Forms::default() }).await?.into_response())
}

async fn send(request: &InApplication, form: &DownlinkForm) -> Result<()> {
    let port = match form.port.as_str() {
        "" => 0,
        port => port.parse::<u8>().map_err(|_| invalid("port", "must be a number from 1 to 223"))?,
    };
    let (payload_raw, payload_fields) = match form.by_fields {
        true => (Vec::new(), form.payload.clone()),
        false => (bytes(&form.payload)?, String::new()),
    };
    let downlink = Downlink {
        app_id: request.app_id().to_string(),
        dev_id: dev_id(request)?.to_string(),
        port: port.into(),
        confirmed: form.confirmed,
        schedule: form.schedule.clone(),
        payload_raw,
        payload_fields,
        warnings: Vec::new(),
    };
    request.handler().await?.schedule_downlink(downlink).await.map(drop).map_err(Error::from)
}
