//! Access keys on the page of an application.

use api::rest::account::NewAccessKey;
use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use types::{AppId, ApplicationRight};

use super::{Forms, refused};
use crate::{
    Account, Error,
    application::Application,
    http::{
        error::HttpError,
        path::{EntityPath, EntityPathAnd},
    },
    site::{
        entity::{parse_rights, path},
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

pub(in crate::site) async fn create(
    State(account): State<Account>,
    viewer: Viewer,
    EntityPath(app_id): EntityPath<Application>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let caller = viewer.caller::<Application>(&account, &app_id);
    let created = match read(&fields) {
        Ok(new) => account.create_key(&caller, &app_id, &new).await,
        Err(error) => Err(error),
    };
    let Err(error) = created else {
        return Ok(done(&path::<Application>(&app_id), Notice::KeyCreated).into_response());
    };
    let (key, status) = Form::refused(&fields, error)?;
    refused(&account, &viewer, &app_id, (Forms { key, ..Forms::default() }, status)).await
}

pub(in crate::site) async fn ask_delete(
    State(account): State<Account>,
    viewer: Viewer,
    EntityPathAnd(app_id, key_id): EntityPathAnd<Application, String>,
) -> Result<Page<ConfirmPage>, HttpError> {
    let name = name_of(&account, &viewer, &app_id, &key_id).await?;
    let text =
        "Every program that uses it loses its access at once. A new key is a different one, even under this name.";
    let (title, back) = (format!("Delete access key “{name}”?"), path::<Application>(&app_id));
    Ok(Page::new(ConfirmPage { frame: viewer.frame(), title, text, button: "Delete access key", back }))
}

pub(in crate::site) async fn delete(
    State(account): State<Account>,
    viewer: Viewer,
    EntityPathAnd(app_id, key_id): EntityPathAnd<Application, String>,
) -> Result<Redirect, HttpError> {
    let name = name_of(&account, &viewer, &app_id, &key_id).await?;
    account.delete_key(&viewer.caller::<Application>(&account, &app_id), &app_id, &name).await?;
    Ok(done(&path::<Application>(&app_id), Notice::KeyDeleted))
}

/// Paths use the key's id, because its name may contain any characters.
async fn name_of(account: &Account, viewer: &Viewer, app_id: &AppId, key_id: &str) -> Result<String, Error> {
    let caller = viewer.caller::<Application>(account, app_id);
    let access = account.access_with::<Application>(&caller, app_id, ApplicationRight::Settings).await?;
    let mut keys = access.entity.value.access_keys.into_iter();
    let found = keys.find(|key| key.id == key_id).map(|key| key.name);
    found.ok_or_else(|| Error::NotFound { what: "access key", id: key_id.to_owned() })
}

fn read(fields: &Fields) -> Result<NewAccessKey, Error> {
    let rights = parse_rights::<Application>(fields.all("rights"))?;
    Ok(NewAccessKey { name: fields.text("key_name").to_owned(), rights })
}
