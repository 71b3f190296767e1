//! The HTTP API: routes under `/api/v2`, and the OAuth endpoints and keys at the root.
//!
//! Routes that v2 clients call without the prefix are at the root, too.

mod access_keys;
mod applications;
mod authorize;
mod clients;
mod collaborators;
mod components;
mod description;
mod euis;
mod frequency_plans;
mod gateways;
mod sessions;
mod tokens;
mod users;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::{any, delete, get, post, put},
};

use crate::{
    Account, Error,
    application::Application,
    component::Component,
    gateway::Gateway,
    http::{cookie, path::EntityInPath, peer, reply::Reply},
    site,
};

impl Account {
    /// The router of the whole HTTP API and the site.
    pub fn router(&self) -> Router {
        let entities = Router::new().merge(applications()).merge(gateways()).merge(components());
        let same_site = from_fn_with_state(self.clone(), cookie::same_site);
        let api = Router::new()
            .merge(users().layer(same_site.clone()))
            .merge(profile().layer(from_fn_with_state(self.clone(), cookie::same_site_or_token)))
            .merge(clients())
            .merge(frequency_plans())
            .merge(description())
            .merge(entities.clone());
        Router::new()
            .nest("/api/v2", api)
            .merge(entities)
            .merge(
                Router::new()
                    .route("/users/authorize", get(authorize::authorize).post(authorize::decide))
                    .route("/users/logout", post(sessions::log_out))
                    .merge(site::pages())
                    .layer(same_site),
            )
            .merge(site::assets())
            .route("/{*path}", any(path_not_found))
            .route("/users/token", post(tokens::token))
            .route("/users/revoke", post(tokens::revoke))
            .route("/users/restrict-token", post(tokens::restrict))
            .route("/key", get(tokens::key))
            .route("/.well-known/jwks.json", get(tokens::jwks))
            .route("/.well-known/oauth-authorization-server", get(tokens::metadata))
            .method_not_allowed_fallback(method_not_allowed)
            .layer(from_fn_with_state(self.clone(), reload_signing_keys))
            .layer(from_fn_with_state(self.clone(), add_hsts))
            .layer(from_fn_with_state(self.clone(), site::html_errors))
            .layer(from_fn_with_state(self.clone(), peer::log_denied_requests))
            .with_state(self.clone())
    }
}

/// The fallback for unknown paths, inside the layers that turn errors into pages.
async fn path_not_found() -> Reply {
    Error::PathNotFound.into()
}

/// The same for unsupported methods.
async fn method_not_allowed() -> Reply {
    Error::MethodNotAllowed.into()
}

fn users() -> Router<Account> {
    Router::new()
        .route("/users", post(users::register))
        .route("/users/login", post(sessions::log_in))
        .route("/users/logout", post(sessions::log_out))
}

/// Routes that take a token or a session.
fn profile() -> Router<Account> {
    Router::new()
        .route("/users/me", get(users::me).patch(users::update))
        .route("/users/me/emails/validate_email", post(users::resend_confirmation))
        .route("/users/me/authorized-clients", get(users::clients))
        .route("/users/me/authorized-clients/{client}", delete(users::revoke_client))
}

/// Reloads the signing keys first, because another instance may have rotated them.
async fn reload_signing_keys(State(account): State<Account>, request: Request, next: Next) -> Response {
    account.signer.reload_if_due(&account.documents, &account.keys).await;
    next.run(request).await
}

/// Tells browsers to use TLS only (HSTS), if the public URL does.
async fn add_hsts(State(account): State<Account>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if account.public_url.is_https() {
        let year = HeaderValue::from_static("max-age=31536000");
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
    response
}

fn applications() -> Router<Account> {
    Router::new()
        .route("/applications", get(applications::list).post(applications::create))
        .route("/applications/token", post(tokens::exchange))
        .route(
            "/applications/{app_id}",
            get(applications::get).patch(applications::update).delete(applications::delete),
        )
        .route("/applications/{app_id}/restore", post(applications::restore))
        .route("/applications/{app_id}/rights", get(applications::rights))
        .route("/applications/{app_id}/token", post(tokens::exchange_for))
        .route("/applications/{app_id}/euis", get(euis::list).post(euis::create))
        .route("/applications/{app_id}/euis/{eui}", put(euis::add).delete(euis::delete))
        .route("/applications/{app_id}/access-keys", get(access_keys::list).post(access_keys::create))
        .route("/applications/{app_id}/access-keys/{name}", get(access_keys::get).delete(access_keys::delete))
        .merge(collaborators::<Application>("/applications/{app_id}"))
}

fn gateways() -> Router<Account> {
    Router::new()
        .route("/gateways", get(gateways::list).post(gateways::create))
        .route("/gateways/{gw_id}", get(gateways::get).patch(gateways::update).delete(gateways::delete))
        .route("/gateways/{gw_id}/token", get(gateways::token))
        .route("/gateways/{gw_id}/rights", get(collaborators::rights::<Gateway>))
        .merge(collaborators::<Gateway>("/gateways/{gw_id}"))
}

fn components() -> Router<Account> {
    Router::new()
        .route("/components", get(components::list))
        .route("/components/{services}", post(components::create))
        .route("/components/{services}/{id}", get(components::get).delete(components::delete))
        .route("/components/{services}/{id}/token", get(components::token))
        .route("/components/{services}/{id}/rights", get(collaborators::rights::<Component>))
        .merge(collaborators::<Component>("/components/{services}/{id}"))
}

/// The routes of an entity's collaborators.
fn collaborators<E: EntityInPath + 'static>(path: &str) -> Router<Account> {
    Router::new().route(&format!("{path}/collaborators"), get(collaborators::list::<E>)).route(
        &format!("{path}/collaborators/{{username}}"),
        get(collaborators::get::<E>).put(collaborators::set::<E>).delete(collaborators::delete::<E>),
    )
}

fn frequency_plans() -> Router<Account> {
    Router::new()
        .route("/frequency-plans", get(frequency_plans::list))
        .route("/frequency-plans/{plan_id}", get(frequency_plans::get))
}

fn description() -> Router<Account> {
    Router::new().route("/openapi.json", get(description::document)).route("/docs", get(description::page))
}

fn clients() -> Router<Account> {
    Router::new()
        .route("/clients", get(clients::list).post(clients::create))
        .route("/clients/{name}", get(clients::get).patch(clients::update).delete(clients::delete))
}
