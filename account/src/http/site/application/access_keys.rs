//! Access keys on the page of an application.

use api::rest::account::NewAccessKey;
use axum::response::{IntoResponse, Redirect, Response};
use types::ApplicationRight;

use super::{Forms, refused};
use crate::{
    Error,
    entity::application::Application,
    http::{
        error::HttpError,
        path::EntityPathAnd,
        site::{
            entity::parse_rights,
            page::{
                Page,
                confirm::ConfirmPage,
                done,
                form::{Fields, Form},
                notice::Notice,
                viewer::EntityRequest,
            },
        },
    },
};

pub(in crate::http::site) async fn create(
    request: EntityRequest<Application>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let created = match read(&fields) {
        Ok(new) => request.account.create_key(&request.caller, &request.id, &new).await,
        Err(error) => Err(error),
    };
    let Err(error) = created else {
        return Ok(done(&request.path(), Notice::KeyCreated).into_response());
    };
    let (key, status) = Form::refused(&fields, error)?;
    refused(&request, (Forms { key, ..Forms::default() }, status)).await
}

pub(in crate::http::site) async fn ask_delete(
    request: EntityRequest<Application>,
    EntityPathAnd(_, key_id): EntityPathAnd<Application, String>,
) -> Result<Page<ConfirmPage>, HttpError> {
    let name = name_of(&request, &key_id).await?;
    let text =
        "Every program that uses it loses its access at once. A new key is a different one, even under this name.";
    let (title, back) = (format!("Delete access key “{name}”?"), request.path());
    Ok(Page::new(ConfirmPage { frame: request.frame(), title, text, button: "Delete access key", back }))
}

pub(in crate::http::site) async fn delete(
    request: EntityRequest<Application>,
    EntityPathAnd(_, key_id): EntityPathAnd<Application, String>,
) -> Result<Redirect, HttpError> {
    let name = name_of(&request, &key_id).await?;
    request.account.delete_key(&request.caller, &request.id, &name).await?;
    Ok(done(&request.path(), Notice::KeyDeleted))
}

/// Paths use the key's id, because its name may contain any characters.
async fn name_of(request: &EntityRequest<Application>, key_id: &str) -> Result<String, Error> {
    let access =
        request.account.access_with::<Application>(&request.caller, &request.id, ApplicationRight::Settings).await?;
    let mut keys = access.entity.value.access_keys.into_iter();
    let found = keys.find(|key| key.id == key_id).map(|key| key.name);
    found.ok_or_else(|| Error::NotFound { what: "access key", id: key_id.to_owned() })
}

fn read(fields: &Fields) -> Result<NewAccessKey, Error> {
    let rights = parse_rights::<Application>(fields.all("rights"))?;
    Ok(NewAccessKey { name: fields.text("key_name").to_owned(), rights })
}
