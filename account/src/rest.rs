//! The HTTP API: paths under `/api/v2`, the OAuth endpoints and keys at the root.
//!
//! What real clients of v2 call without the prefix, they find at the root too.

mod access_keys;
mod applications;
mod body;
mod caller;
mod collaborators;
mod euis;
mod reply;
mod tokens;
mod users;

use axum::{
    Router,
    routing::{get, post, put},
};

use crate::Account;

impl Account {
    /// The whole HTTP API.
    pub fn router(&self) -> Router {
        let applications = applications();
        let api = Router::new()
            .route("/users", post(users::register))
            .route("/users/me", get(users::me))
            .merge(applications.clone());
        Router::new()
            .nest("/api/v2", api)
            .merge(applications)
            .route("/users/token", post(tokens::token))
            .route("/users/restrict-token", post(tokens::restrict))
            .route("/key", get(tokens::key))
            .route("/.well-known/jwks.json", get(tokens::jwks))
            .with_state(self.clone())
    }
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
        .route("/applications/{app_id}/collaborators", get(collaborators::list))
        .route(
            "/applications/{app_id}/collaborators/{username}",
            get(collaborators::get).put(collaborators::set).delete(collaborators::delete),
        )
        .route("/applications/{app_id}/access-keys", get(access_keys::list).post(access_keys::create))
        .route("/applications/{app_id}/access-keys/{name}", get(access_keys::get).delete(access_keys::delete))
}
