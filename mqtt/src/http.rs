//! The requests of other brokers, in the form of each product.

mod emqx;
mod mosquitto;
mod rabbitmq;
pub(crate) mod requests;
mod vernemq;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use sha2::{Digest, Sha256};
use types::Secret;

use self::requests::AccessRequests;
use crate::access::authenticator::Refusal;

type Shared = State<Arc<AccessRequests>>;

/// The routes, below a secret that is part of every path, if there is one: not every broker can send headers.
pub fn access_router(requests: Arc<AccessRequests>, secret: Option<Secret>) -> Router {
    let routes = Router::new()
        .route("/rabbitmq/user", get(rabbitmq::user).post(rabbitmq::user))
        .route("/rabbitmq/vhost", get(rabbitmq::vhost).post(rabbitmq::vhost))
        .route("/rabbitmq/resource", get(rabbitmq::resource).post(rabbitmq::resource))
        .route("/rabbitmq/topic", get(rabbitmq::topic).post(rabbitmq::topic))
        .route("/emqx/authentication", post(emqx::authentication))
        .route("/emqx/authorization", post(emqx::authorization))
        .route("/vernemq", post(vernemq::hook))
        .route("/mosquitto/user", post(mosquitto::user))
        .route("/mosquitto/superuser", post(mosquitto::superuser))
        .route("/mosquitto/acl", post(mosquitto::acl))
        .with_state(requests);
    match secret {
        None => routes,
        Some(secret) => Router::new().nest("/{secret}", routes).layer(from_fn_with_state(Arc::new(secret), check)),
    }
}

/// Refuses a request without the secret. The hashes are compared, so that the time says nothing about the secret.
async fn check(State(secret): State<Arc<Secret>>, request: Request, next: Next) -> Response {
    let presented = request.uri().path().split('/').nth(1).unwrap_or_default();
    if Sha256::digest(presented) == Sha256::digest(secret.expose()) {
        next.run(request).await
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

/// Returns true if the answer is yes. Questions that cannot be answered now are denied, and logged by the caller.
fn is_allowed(answer: &Result<bool, Refusal>) -> bool {
    matches!(answer, Ok(true))
}
