//! EUIs on the page of an application.

use axum::response::{IntoResponse, Redirect, Response};

use super::{Forms, refused};
use crate::{
    entity::application::{Application, eui},
    http::{
        error::HttpError,
        path::EntityPathAnd,
        site::page::{
            Page,
            confirm::ConfirmPage,
            done,
            form::{Fields, Form},
            notice::Notice,
            viewer::EntityRequest,
        },
    },
};

/// Adds the EUI that was entered, or a random one of the configured block.
pub(in crate::http::site) async fn add(
    request: EntityRequest<Application>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let EntityRequest { account, caller, id, .. } = &request;
    let added = match fields.filled("eui").map(|typed| eui::parse(&typed.to_ascii_uppercase())) {
        None => account.add_drawn_eui(caller, id).await.map(drop),
        Some(Ok(eui)) => account.add_eui(caller, id, eui).await,
        Some(Err(error)) => Err(error),
    };
    let Err(error) = added else { return Ok(done(&request.path(), Notice::EuiAdded).into_response()) };
    let (eui, status) = Form::refused(&fields, error)?;
    refused(&request, (Forms { eui, ..Forms::default() }, status)).await
}

pub(in crate::http::site) async fn ask_remove(
    request: EntityRequest<Application>,
    EntityPathAnd(_, eui): EntityPathAnd<Application, String>,
) -> Result<Page<ConfirmPage>, HttpError> {
    let eui = eui::parse(&eui)?;
    let text = "Devices that join with it no longer reach this application, and another application may take it.";
    let (title, back) = (format!("Remove EUI {eui}?"), request.path());
    Ok(Page::new(ConfirmPage { frame: request.frame(), title, text, button: "Remove EUI", back }))
}

pub(in crate::http::site) async fn remove(
    request: EntityRequest<Application>,
    EntityPathAnd(_, eui): EntityPathAnd<Application, String>,
) -> Result<Redirect, HttpError> {
    request.account.remove_eui(&request.caller, &request.id, eui::parse(&eui)?).await?;
    Ok(done(&request.path(), Notice::EuiRemoved))
}
