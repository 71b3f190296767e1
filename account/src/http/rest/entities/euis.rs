//! `/applications/{app_id}/euis`: EUIs of an application.

use std::str::FromStr;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use server::json::Json;
use types::AppEui;

use crate::{
    Account, Error,
    entity::{
        access::Caller,
        application::{Application, eui},
    },
    http::{
        credentials::ParsesCreated,
        error::HttpError,
        openapi::responses::{Changed, Created},
        path::{EntityPath, EntityPathAnd},
    },
};

/// The EUI; in an object for clients that accept `application/json`, or send no `Accept`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum NewEui {
    Bare(AppEui),
    Object { eui: AppEui },
}

/// The EUI, in upper case.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(super) struct EuiInPath(#[schemars(with = "String", pattern(r"^[0-9A-F]{16}$"))] AppEui);

impl FromStr for EuiInPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        eui::parse(text).map(Self)
    }
}

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Json<Vec<AppEui>>, HttpError> {
    let mut access = account.access_to_read(&caller, &app_id).await?;
    account.complete_claims(&mut access.entity.value).await?;
    Ok(Json(access.entity.value.euis))
}

/// Adds a random EUI of the configured block. The specification has a bare string; v2 SDKs expect an object.
pub(super) async fn create(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
    ParsesCreated(wants_json): ParsesCreated,
) -> Result<Created<NewEui>, HttpError> {
    let eui = account.add_drawn_eui(&caller, &app_id).await?;
    Ok(Created(if wants_json { NewEui::Object { eui } } else { NewEui::Bare(eui) }))
}

pub(super) async fn add(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(app_id, EuiInPath(eui)): EntityPathAnd<Application, EuiInPath>,
) -> Result<Changed, HttpError> {
    account.add_eui(&caller, &app_id, eui).await?;
    Ok(Changed)
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    EntityPathAnd(app_id, EuiInPath(eui)): EntityPathAnd<Application, EuiInPath>,
) -> Result<Changed, HttpError> {
    account.remove_eui(&caller, &app_id, eui).await?;
    Ok(Changed)
}
