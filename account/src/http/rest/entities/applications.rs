//! `/applications`: applications.

use api::rest::account::{Application as Body, Named, NewApplication, Owner};
use axum::extract::{Query, State, rejection::QueryRejection};
use schemars::JsonSchema;
use serde::Deserialize;
use server::{json::Json, usage::Usage};
use types::{AppId, ClientId, Grant, Scope, UserId, Username};

use crate::{
    Account, Error,
    entity::{
        EntityPage,
        access::{Access, Caller},
        all_rights,
        application::{Application, ApplicationRights, check_name},
    },
    http::{
        body::JsonBody,
        error::HttpError,
        openapi::responses::{Changed, Created, Page},
        paging::{PageQuery, next_link},
        path::EntityPath,
    },
};

/// The query of a list.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ListQuery {
    /// `1` lists deleted applications too.
    #[serde(default)]
    deleted: Option<String>,
}

/// Who was granted something: a user, perhaps through a client, or an access key by its id; by default the owner.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct GrantQuery {
    /// The id of a user.
    user: Option<UserId>,
    /// The OAuth client that called in the user's name.
    client: Option<ClientId>,
    /// The id of an access key.
    key: Option<String>,
}

/// An update. Further members are ignored, because clients send back what they read.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ApplicationUpdate")]
pub(super) struct Update {
    /// A name for people.
    #[schemars(length(max = 200))]
    name: Option<String>,
    /// The new owner: a collaborator with all rights.
    owner: Option<Named<Username>>,
}

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    PageQuery { after }: PageQuery<AppId>,
    query: Result<Query<ListQuery>, QueryRejection>,
    usage: Usage,
) -> Result<Page<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Apps)?;
    let Query(query) = query.map_err(|error| Error::Body(error.body_text()))?;
    let deleted_too = query.deleted.as_deref() == Some("1");
    let after = after.as_ref().map(AppId::as_str);
    let EntityPage { mut entities, next } = account.entities_of::<Application>(&user_id, after).await?;
    entities.retain(|application| deleted_too || application.deleted.is_none());
    let mut bodies = Vec::with_capacity(entities.len());
    let mut turn = usage.turn_for_entries().await;
    for application in entities {
        turn.next_entry().await;
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
    if update.name.is_none() && update.owner.is_none() {
        return Err(Error::Invalid { what: "body", must: "must have a name or an owner" }.into());
    }
    // Checked before the owner changes, so that an update is not refused half-way.
    update.name.as_deref().map_or(Ok(()), check_name)?;
    if let Some(owner) = &update.owner {
        account.transfer_application(&caller, &app_id, owner.id()).await?;
    }
    if let Some(name) = &update.name {
        account.rename_application(&caller, &app_id, name).await?;
    }
    Ok(Changed)
}

pub(super) async fn owner(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
) -> Result<Json<Owner>, HttpError> {
    let owner = account.application_owner(&caller, &app_id).await?;
    Ok(Json(Owner { id: owner.id, username: owner.username }))
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

pub(super) async fn granted(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(app_id): EntityPath<Application>,
    query: Result<Query<GrantQuery>, QueryRejection>,
) -> Result<Json<ApplicationRights>, HttpError> {
    let Query(GrantQuery { user, client, key }) = query.map_err(|error| Error::Body(error.body_text()))?;
    let grant = match (user, key) {
        (Some(id), None) => Grant::User { id, client },
        (None, Some(id)) => Grant::Key { id },
        (None, None) => Grant::Owner,
        (Some(_), Some(_)) => return Err(Error::Invalid { what: "query", must: "must name a user or a key" }.into()),
    };
    Ok(Json(account.granted_rights(&caller, &app_id, &grant).await?))
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
