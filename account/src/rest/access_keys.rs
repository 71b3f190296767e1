//! `/applications/{app_id}/access-keys`: access keys of an application.

use api::rest::account::{AccessKey, NewAccessKey};
use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use types::ApplicationRight;

use crate::{
    Account,
    application::Application,
    entity::access::{Caller, Deleted},
    http::{
        body::JsonBody,
        credentials::WantsJson,
        path::{EntityPath, EntityPathAnd},
        reply::Reply,
    },
};

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Json<Vec<AccessKey>>, Reply> {
    let access = account.access::<Application>(&caller, &app_id, Deleted::Excluded).await?;
    access.require(ApplicationRight::Settings)?;
    Ok(Json(account.show_keys(&access.entity.value, &access.rights)?))
}

/// Creates a key. The specification has no response body; clients that accept JSON get the key.
pub(super) async fn create(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
    WantsJson(wants_json): WantsJson,
    JsonBody(new): JsonBody<NewAccessKey>,
) -> Result<Response, Reply> {
    let key = account.create_key(&caller, &app_id, &new).await?;
    Ok(match wants_json {
        true => (StatusCode::CREATED, Json(key)).into_response(),
        false => StatusCode::NO_CONTENT.into_response(),
    })
}

pub(super) async fn get(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(app_id, name): EntityPathAnd<Application, String>,
) -> Result<Json<AccessKey>, Reply> {
    let access = account.access::<Application>(&caller, &app_id, Deleted::Excluded).await?;
    access.require(ApplicationRight::Settings)?;
    Ok(Json(account.show_key_named(&access.entity.value, &access.rights, &name)?))
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(app_id, name): EntityPathAnd<Application, String>,
) -> Result<StatusCode, Reply> {
    account.delete_key(&caller, &app_id, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
