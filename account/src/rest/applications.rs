//! `/applications`: applications.

use api::rest::account::{Application as Body, NewApplication};
use axum::extract::{Query, State, rejection::QueryRejection};
use schemars::JsonSchema;
use serde::Deserialize;
use server::json::Json;
use types::{AppId, Scope};

use crate::{
    Account, Error,
    application::{Application, ApplicationRights},
    entity::{
        EntityPage,
        access::{Access, Caller},
        all_rights,
    },
    http::{
        body::JsonBody,
        error::HttpError,
        paging::{PageQuery, next_link},
        path::EntityPath,
    },
    openapi::responses::{Changed, Created, Page},
};

/// The query of a list.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ListQuery {
    /// `1` lists deleted applications too.
    #[serde(default)]
    deleted: Option<String>,
}

/// An update. Further members are ignored, because clients send back what they read.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ApplicationUpdate")]
pub(super) struct Update {
    /// A name for people.
    #[schemars(length(max = 200))]
    name: Option<String>,
}

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    PageQuery { after }: PageQuery<AppId>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Page<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Apps)?;
    let Query(query) = query.map_err(|error| Error::Body(error.body_text()))?;
    let deleted_too = query.deleted.as_deref() == Some("1");
    let after = after.as_ref().map(AppId::as_str);
    let EntityPage { mut entities, next } = account.entities_of::<Application>(&user_id, after).await?;
    entities.retain(|application| deleted_too || application.deleted.is_none());
    let mut bodies = Vec::with_capacity(entities.len());
    for application in entities {
        let rights = application.collaborators.get(&user_id).cloned().unwrap_or_default();
        bodies.push(account.show(&application, &rights).await?);
    }
    Ok(Page { next: next_link(next, if deleted_too { "deleted=1&" } else { "" }), items: bodies })
}

pub(super) async fn create(
    State(account): State<Account>,
    caller: Caller,
    JsonBody(new): JsonBody<NewApplication>,
) -> Result<Created<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Apps)?;
    let application = account.create_application(&user_id, new).await?;
    let rights = all_rights::<Application>();
    Ok(Created(account.show(&application, &rights).await?))
}

pub(super) async fn get(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Json<Body>, HttpError> {
    let mut access = account.access_to_read(&caller, &app_id).await?;
    account.complete_claims(&mut access.entity.value).await?;
    if let Ok(user_id) = caller.user() {
        account.repair_index::<Application>(&user_id, &app_id).await?;
    }
    let Access { entity, rights, .. } = access;
    Ok(Json(account.show(&entity.value, &rights).await?))
}

pub(super) async fn update(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
    JsonBody(update): JsonBody<Update>,
) -> Result<Changed, HttpError> {
    let missing = || Error::Invalid { what: "body", must: "must have a name" };
    account.rename_application(&caller, &app_id, &update.name.ok_or_else(missing)?).await?;
    Ok(Changed)
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Changed, HttpError> {
    account.delete_application(&caller, &app_id).await?;
    Ok(Changed)
}

pub(super) async fn restore(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Changed, HttpError> {
    account.restore_application(&caller, &app_id).await?;
    Ok(Changed)
}

pub(super) async fn rights(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Json<ApplicationRights>, HttpError> {
    Ok(Json(account.access_to_read(&caller, &app_id).await?.rights))
}

impl Account {
    /// The response body for a caller with these rights.
    async fn show(&self, application: &Application, rights: &ApplicationRights) -> Result<Body, Error> {
        Ok(Body {
            id: application.id.clone(),
            name: application.name.clone(),
            euis: application.euis.clone(),
            created: application.created,
            rights: rights.iter().copied().collect(),
            collaborators: self.collaborators_for(application, rights).await?,
            access_keys: self.keys_for(application, rights)?,
            deleted: application.deleted,
        })
    }
}
