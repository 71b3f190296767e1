//! `/applications/{app_id}/access-keys`: access keys of an application.

use std::{convert::Infallible, str::FromStr};

use api::rest::account::{AccessKey, NewAccessKey};
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use server::json::Json;
use types::ApplicationRight;

use crate::{
    Account,
    entity::{access::Caller, application::Application},
    http::{
        body::JsonBody,
        credentials::ParsesCreated,
        error::HttpError,
        openapi::responses::{Changed, Created},
        path::{EntityPath, EntityPathAnd},
    },
};

/// The name of the key.
#[derive(JsonSchema)]
#[schemars(inline, example = "default key")]
pub(super) struct KeyName(#[schemars(length(min = 1))] String);

impl FromStr for KeyName {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self(name.to_owned()))
    }
}

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Json<Vec<AccessKey>>, HttpError> {
    let access = account.access_with::<Application>(&caller, &app_id, ApplicationRight::Settings).await?;
    Ok(Json(account.show_keys(&access.entity.value, &access.rights)?))
}

/// Creates a key. The specification has no response body; clients that accept JSON, or send no `Accept`, get the key.
pub(super) async fn create(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
    ParsesCreated(wants_json): ParsesCreated,
    JsonBody(new): JsonBody<NewAccessKey>,
) -> Result<Response, HttpError> {
    let key = account.create_key(&caller, &app_id, &new).await?;
    Ok(match wants_json {
        true => Created(key).into_response(),
        false => StatusCode::NO_CONTENT.into_response(),
    })
}

pub(super) async fn get(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(app_id, KeyName(name)): EntityPathAnd<Application, KeyName>,
) -> Result<Json<AccessKey>, HttpError> {
    let access = account.access_with::<Application>(&caller, &app_id, ApplicationRight::Settings).await?;
    Ok(Json(account.show_key_named(&access.entity.value, &access.rights, &name)?))
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(app_id, KeyName(name)): EntityPathAnd<Application, KeyName>,
) -> Result<Changed, HttpError> {
    account.delete_key(&caller, &app_id, &name).await?;
    Ok(Changed)
}
