//! `/components`: network components. Paths name the service in the plural.

use api::rest::account::{Component as Body, ComponentToken, NewComponent};
use axum::extract::State;
use server::{json::Json, usage::Usage};
use types::{ComponentId, ComponentRight, Scope};

use crate::{
    Account, Error,
    entity::{
        Entity, EntityPage,
        access::{Caller, Deleted},
        all_rights,
        component::{Component, ComponentRights, ServiceAndId},
        not_found,
    },
    http::{
        body::JsonBody,
        error::HttpError,
        openapi::responses::{Changed, Created, NoStore, Page},
        paging::{PageQuery, next_link},
        path::{EntityPath, ServicePath},
    },
    metrics,
    token::lifetime::MACHINE_SECONDS,
};

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    PageQuery { after }: PageQuery<ComponentId>,
    usage: Usage,
) -> Result<Page<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Components)?;
    let after = after.as_ref().map(ComponentId::as_str);
    let EntityPage { entities, next } = account.entities_of::<Component>(&user_id, after).await?;
    let mut bodies = Vec::with_capacity(entities.len());
    let mut turn = usage.turn_for_entries().await;
    for component in entities.iter().filter(|component| !component.is_deleted()) {
        turn.next_entry().await;
        bodies.push(account.show_component(component, &component.rights_of(&user_id)).await?);
    }
    Ok(Page { next: next_link(next, ""), items: bodies })
}

pub(super) async fn create(
    State(account): State<Account>,
    caller: Caller,
    ServicePath(service): ServicePath,
    JsonBody(NewComponent { id }): JsonBody<NewComponent>,
) -> Result<Created<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Components)?;
    let component = account.create_component(&user_id, &ServiceAndId { service, id }).await?;
    Ok(Created(account.show_component(&component, &all_rights::<Component>()).await?))
}

pub(super) async fn get(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(id): EntityPath<Component>,
) -> Result<Json<Body>, HttpError> {
    let access = account.access::<Component>(&caller, &id, Deleted::Excluded).await?;
    account.repair_index::<Component>(&caller.user()?, &id).await?;
    Ok(Json(account.show_component(&access.entity.value, &access.rights).await?))
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(id): EntityPath<Component>,
) -> Result<Changed, HttpError> {
    account.delete_component(&caller, &id).await?;
    Ok(Changed)
}

pub(super) async fn token(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(id): EntityPath<Component>,
) -> Result<NoStore<ComponentToken>, HttpError> {
    let component = account.component_for_token(&caller, &id).await?;
    let expires = account.clock.now().plus(std::time::Duration::from_secs(MACHINE_SECONDS));
    let token = account.sign_component(&component).await?;
    metrics::issued("component");
    Ok(NoStore(ComponentToken { token, expires }))
}

impl Account {
    /// Allows collaborators with the right `component:settings`, and the component itself, which renews its token.
    async fn component_for_token(&self, caller: &Caller, id: &ServiceAndId) -> Result<Component, Error> {
        if caller.is_component(id.service, &id.id) {
            let found = self.find_entity::<Component>(id, Deleted::Excluded).await?;
            return found.map(|stored| stored.value).ok_or_else(|| not_found::<Component>(id));
        }
        Ok(self.access_with::<Component>(caller, id, ComponentRight::Settings).await?.entity.value)
    }

    /// The response body for a caller with these rights.
    async fn show_component(&self, component: &Component, rights: &ComponentRights) -> Result<Body, Error> {
        let Component { service, id, created, .. } = component.clone();
        let collaborators = self.collaborators_for(component, rights).await?;
        Ok(Body { service, id, created, collaborators })
    }
}
