//! Deletes a device, after asking.

use askama::Template;
use axum::response::Redirect;

use super::dev_id;
use crate::{
    Error, Result,
    form::device::read,
    site::{
        failure::Failure,
        page::{Frame, Page},
        viewer::InApplication,
    },
};

#[derive(Template)]
#[template(path = "device_delete.html")]
pub(in crate::site) struct Delete {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    dev_id: String,
    description: String,
}

/// Asks whether it is to be deleted.
pub(in crate::site) async fn confirm(request: InApplication) -> Result<Page<Delete>, Failure> {
    let device = read(&request.handler().await?, request.app_id(), &dev_id(&request)?).await?;
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    let (dev_id, description) = (device.dev_id, device.description);
    Ok(Page::new(Delete { frame, app_id, tab: "devices", dev_id, description }))
}

pub(in crate::site) async fn delete(request: InApplication) -> Result<Redirect, Failure> {
    let deleted = request.handler().await?.delete_device(request.app_id(), &dev_id(&request)?).await;
    deleted.map_err(|error| Error::hiding("device", error))?;
    Ok(Redirect::to(&format!("{}?done=deleted", request.path())))
}
