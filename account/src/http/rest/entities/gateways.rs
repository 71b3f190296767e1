//! `/gateways`: gateways, for collaborators, for themselves and for the public.

pub(in crate::http::rest) mod firmware;

use api::rest::account::{Gateway as Body, GatewayUpdate, NewGateway, Owner, TokenResponse};
use axum::{extract::State, http::HeaderMap};
use schemars::JsonSchema;
use serde::Serialize;
use server::usage::Usage;
use types::{GatewayId, GatewayRight, Scope};

use crate::{
    Account, Error,
    entity::{
        Entity, EntityPage,
        access::{Access, Caller},
        all_rights,
        gateway::{Gateway, GatewayRights},
        not_found,
    },
    http::{
        base_url::Address,
        body::JsonBody,
        error::HttpError,
        openapi::responses::{Changed, Created, NoStore, Page},
        paging::{PageQuery, next_link},
        path::EntityPath,
        rest::frequency_plans,
    },
    metrics,
    token::lifetime::MACHINE_SECONDS,
};

/// A gateway, or what its firmware can read of it.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum Shown {
    Whole(Box<Body>),
    Trimmed(firmware::Trimmed),
}

pub(super) async fn list(
    State(account): State<Account>,
    caller: Caller,
    PageQuery { after }: PageQuery<GatewayId>,
    address: Address,
    usage: Usage,
) -> Result<Page<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Gateways)?;
    let after = after.as_ref().map(GatewayId::as_str);
    let EntityPage { entities, next } = account.entities_of::<Gateway>(&user_id, after).await?;
    let mut bodies = Vec::with_capacity(entities.len());
    let mut turn = usage.turn_for_entries().await;
    for gateway in entities.iter().filter(|gateway| !gateway.is_deleted()) {
        turn.next_entry().await;
        bodies.push(account.show_gateway(gateway, &gateway.rights_of(&user_id), &address).await?);
    }
    Ok(Page { next: next_link(next, ""), items: bodies })
}

pub(super) async fn create(
    State(account): State<Account>,
    caller: Caller,
    address: Address,
    JsonBody(new): JsonBody<NewGateway>,
) -> Result<Created<Body>, HttpError> {
    let user_id = caller.user_with(&Scope::Gateways)?;
    let gateway = account.create_gateway(&user_id, new).await?;
    let body = account.show_gateway(&gateway, &all_rights::<Gateway>(), &address).await?;
    Ok(Created(body))
}

/// Returns the public part of a gateway, and more to callers with rights.
pub(super) async fn get(
    State(account): State<Account>,
    caller: Option<Caller>,
    EntityPath(gateway_id): EntityPath<Gateway>,
    address: Address,
    headers: HeaderMap,
) -> Result<NoStore<Shown>, HttpError> {
    let (mut gateway, rights) = account.gateway_for(caller.as_ref(), &gateway_id).await?;
    let mut body = account.show_gateway(&gateway, &rights, &address).await?;
    if let Some(itself @ Caller::Key(_)) = &caller {
        body.token = Some(account.token_response(itself, &mut gateway).await?);
        body.key = Some(account.gateway_key(&gateway)?);
        body.activated = gateway.activated;
    }
    // What is shown depends on who asks, and secrets may be among it.
    Ok(NoStore(match firmware::is_sender(&headers) {
        true => Shown::Trimmed(body.into()),
        false => Shown::Whole(Box::new(body)),
    }))
}

pub(super) async fn update(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(gateway_id): EntityPath<Gateway>,
    JsonBody(update): JsonBody<GatewayUpdate>,
) -> Result<Changed, HttpError> {
    account.update_gateway(&caller, &gateway_id, &update).await?;
    Ok(Changed)
}

pub(super) async fn delete(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(gateway_id): EntityPath<Gateway>,
) -> Result<Changed, HttpError> {
    account.delete_gateway(&caller, &gateway_id).await?;
    Ok(Changed)
}

/// Issues a token to the gateway itself, or to callers who may read its key.
pub(super) async fn token(
    State(account): State<Account>,
    caller: Caller,
    EntityPath(gateway_id): EntityPath<Gateway>,
) -> Result<NoStore<TokenResponse>, HttpError> {
    let mut access = account.access_with_key::<Gateway>(&caller, &gateway_id).await?;
    if matches!(caller, Caller::Bearer(_)) {
        access.require(GatewayRight::Settings)?;
    }
    Ok(NoStore(account.token_response(&caller, &mut access.entity.value).await?))
}

impl Account {
    /// A gateway and the caller's rights. Callers whose token is not about this gateway get its public part, and the
    /// operator's components the owner, too, to whom its records are charged.
    async fn gateway_for(
        &self,
        caller: Option<&Caller>,
        gateway_id: &GatewayId,
    ) -> Result<(Gateway, GatewayRights), Error> {
        let scope = Gateway::scope(gateway_id);
        let unrelated = |caller: &&Caller| matches!(caller, Caller::Bearer(claims) if !claims.scope.contains(&scope));
        if let Some(caller) = caller.filter(|caller| !unrelated(caller)) {
            let Access { entity, rights, .. } = self.access_with_key::<Gateway>(caller, gateway_id).await?;
            if let Ok(user_id) = caller.user() {
                self.repair_index::<Gateway>(&user_id, gateway_id).await?;
            }
            return Ok((entity.value, rights));
        }
        let found = self.entity::<Gateway>(gateway_id).await?.filter(|stored| !stored.value.is_deleted());
        let gateway = found.ok_or_else(|| not_found::<Gateway>(gateway_id))?.value;
        let mut rights = GatewayRights::new();
        if let Some(caller) = caller.filter(|caller| caller.component().is_ok())
            && self.check_own_component(caller).await.is_ok()
        {
            rights.insert(GatewayRight::Owner);
        }
        Ok((gateway, rights))
    }

    async fn token_response(&self, caller: &Caller, gateway: &mut Gateway) -> Result<TokenResponse, Error> {
        let access_token = self.gateway_token(caller, gateway).await?;
        metrics::issued("gateway");
        Ok(TokenResponse { token_type: None, access_token, expires_in: MACHINE_SECONDS, refresh_token: None })
    }

    /// The response body for a caller with these rights.
    async fn show_gateway(&self, gateway: &Gateway, rights: &GatewayRights, address: &Address) -> Result<Body, Error> {
        let may = |right: GatewayRight| rights.contains(&right);
        let exact = gateway.location_public || may(GatewayRight::Location);
        let owner = match gateway.owner_public || may(GatewayRight::Owner) {
            true => self.user(&gateway.owner).await?.map(|user| Owner { id: user.id, username: user.username }),
            false => None,
        };
        Ok(Body {
            id: gateway.id.clone(),
            activated: gateway.activated,
            frequency_plan: gateway.frequency_plan.clone(),
            frequency_plan_url: frequency_plans::url(address, &gateway.frequency_plan),
            auto_update: gateway.auto_update,
            beta_updates: gateway.beta_updates,
            location_public: gateway.location_public,
            status_public: gateway.status_public,
            owner_public: gateway.owner_public,
            antenna_location: if exact { gateway.antenna_location } else { self.approximate_location(gateway) },
            attributes: gateway.attributes.clone(),
            router: self.router_of(gateway),
            fallback_routers: self.fallback_routers_of(gateway),
            owner,
            collaborators: self.collaborators_for(gateway, rights).await?,
            key: self.gateway_key_for(gateway, rights)?,
            token: None,
        })
    }
}
