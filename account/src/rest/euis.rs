//! `/applications/{app_id}/euis`: EUIs of an application.

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;
use types::AppEui;

use crate::{
    Account,
    application::{Application, eui},
    entity::access::Caller,
    http::{
        credentials::WantsJson,
        path::{EntityPath, EntityPathAnd},
        reply::Reply,
    },
};

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Json<Vec<AppEui>>, Reply> {
    let mut access = account.access_to_read(&caller, &app_id).await?;
    account.complete_claims(&mut access.entity.value).await?;
    Ok(Json(access.entity.value.euis))
}

/// Adds a random EUI of the configured block. The specification has a bare string; v2 SDKs expect an object.
pub(super) async fn create(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
    WantsJson(wants_json): WantsJson,
) -> Result<Response, Reply> {
    let eui = account.add_drawn_eui(&caller, &app_id).await?;
    let body = if wants_json { Json(json!({ "eui": eui })).into_response() } else { Json(eui).into_response() };
    Ok((StatusCode::CREATED, body).into_response())
}

pub(super) async fn add(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(app_id, eui): EntityPathAnd<Application, String>,
) -> Result<StatusCode, Reply> {
    account.add_eui(&caller, &app_id, eui::parse(&eui)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(app_id, eui): EntityPathAnd<Application, String>,
) -> Result<StatusCode, Reply> {
    account.remove_eui(&caller, &app_id, eui::parse(&eui)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
