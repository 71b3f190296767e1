//! Deletes a device, after asking.

use askama::Template;
use axum::response::Response;

use super::dev_id;
use crate::{
    Result,
    form::device::read,
    site::{
        devices::many::delete::delete as delete_all,
        failure::Failure,
        page::{Frame, Page, shown},
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
    let (dev_id, description) = (device.dev_id, shown(&device.description));
    Ok(Page::new(Delete { frame, app_id, tab: "devices", dev_id, description }))
}

/// Deletes it, as if it were one of many.
pub(in crate::site) async fn delete(request: InApplication) -> Result<Response, Failure> {
    let (handler, dev_id) = (request.handler().await?, dev_id(&request)?);
    read(&handler, request.app_id(), &dev_id).await?;
    Ok(delete_all(&request, &handler, vec![dev_id]).await?)
}
