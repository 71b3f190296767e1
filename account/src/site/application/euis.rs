//! EUIs on the page of an application.

use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};

use super::{Forms, refused};
use crate::{
    Account,
    application::{Application, eui},
    http::{
        error::HttpError,
        path::{EntityPath, EntityPathAnd},
    },
    site::{
        entity::path,
        page::{
            Page,
            confirm::ConfirmPage,
            done,
            form::{Fields, Form},
            notice::Notice,
            viewer::Viewer,
        },
    },
};

/// Adds the EUI that was entered, or a random one of the configured block.
pub(in crate::site) async fn add(
    State(account): State<Account>,
    viewer: Viewer,
    EntityPath(app_id): EntityPath<Application>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let caller = viewer.caller::<Application>(&account, &app_id);
    let added = match fields.filled("eui").map(|typed| eui::parse(&typed.to_ascii_uppercase())) {
        None => account.add_drawn_eui(&caller, &app_id).await.map(drop),
        Some(Ok(eui)) => account.add_eui(&caller, &app_id, eui).await,
        Some(Err(error)) => Err(error),
    };
    let Err(error) = added else { return Ok(done(&path::<Application>(&app_id), Notice::EuiAdded).into_response()) };
    let (eui, status) = Form::refused(&fields, error)?;
    refused(&account, &viewer, &app_id, (Forms { eui, ..Forms::default() }, status)).await
}

pub(in crate::site) async fn ask_remove(
    viewer: Viewer,
    EntityPathAnd(app_id, eui): EntityPathAnd<Application, String>,
) -> Result<Page<ConfirmPage>, HttpError> {
    let eui = eui::parse(&eui)?;
    let text = "Devices that join with it no longer reach this application, and another application may take it.";
    let (title, back) = (format!("Remove EUI {eui}?"), path::<Application>(&app_id));
    Ok(Page::new(ConfirmPage { frame: viewer.frame(), title, text, button: "Remove EUI", back }))
}

pub(in crate::site) async fn remove(
    State(account): State<Account>,
    viewer: Viewer,
    EntityPathAnd(app_id, eui): EntityPathAnd<Application, String>,
) -> Result<Redirect, HttpError> {
    let caller = viewer.caller::<Application>(&account, &app_id);
    account.remove_eui(&caller, &app_id, eui::parse(&eui)?).await?;
    Ok(done(&path::<Application>(&app_id), Notice::EuiRemoved))
}
