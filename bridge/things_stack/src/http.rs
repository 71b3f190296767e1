//! The requests of webhooks.

pub(super) mod webhook;

use std::sync::Arc;

use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
    routing::post,
};
use bridge::metrics;
use server::{status, usage::Usage};
use types::Kinded;

use self::webhook::{Admitted, Refusal, Webhook, WebhookListener};

/// Maximum size of a message, in bytes: that of one over MQTT.
const BODY_BYTES_MAX: usize = 1024 * 1024;
const SCHEME: &[u8] = b"Bearer ";
const DOWNLINK_KEY: &str = "x-downlink-apikey";
const DOWNLINK_PUSH: &str = "x-downlink-push";

/// Receives messages at every path. Several networks may listen at the same address: the key of a request says which of
/// them it is for.
pub fn webhook_router(listeners: &[WebhookListener]) -> Router {
    let webhooks: Arc<[_]> = listeners.iter().map(|listener| listener.webhook.clone()).collect();
    Router::new().route("/", post(receive)).route("/{*path}", post(receive)).with_state(webhooks)
}

async fn receive(State(webhooks): State<Arc<[Arc<Webhook>]>>, request: Request) -> Response {
    match handle(&webhooks, request).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(refusal) => {
            let status = status::http(refusal.kind());
            metrics::webhook_refused(status.as_u16());
            (status, format!("{refusal}\n")).into_response()
        }
    }
}

async fn handle(webhooks: &[Arc<Webhook>], request: Request) -> Result<(), Refusal> {
    let (parts, body) = request.into_parts();
    let (webhook, admitted) = admit(webhooks, key(&parts.headers))?;
    Usage::in_extensions(&parts.extensions).set_key_holder();
    let body = to_bytes(body, BODY_BYTES_MAX).await.map_err(|_| Refusal::TooLarge)?;
    let push = parts.headers.get(DOWNLINK_PUSH).and_then(|value| value.to_str().ok());
    webhook.receive(admitted, body, push).await
}

/// Admits a request to the one webhook that has its key. All of them compare it, so that the time tells nothing.
fn admit<'a>(webhooks: &'a [Arc<Webhook>], key: Option<&[u8]>) -> Result<(&'a Webhook, Admitted<'a>), Refusal> {
    let (mut found, mut refusal) = (Vec::new(), Refusal::Key);
    for webhook in webhooks {
        match webhook.admit(key) {
            Ok(admitted) => found.push((&**webhook, admitted)),
            Err(Refusal::Key) => {}
            Err(other) => refusal = other,
        }
    }
    let first = found.pop().ok_or(refusal)?;
    if found.is_empty() { Ok(first) } else { Err(Refusal::Ambiguous) }
}

/// The key that a request brings: in `Authorization`, or the one for downlinks.
fn key(headers: &HeaderMap) -> Option<&[u8]> {
    match one(headers, AUTHORIZATION.as_str()) {
        Some(value) => {
            let (scheme, key) = value?.split_at_checked(SCHEME.len())?;
            scheme.eq_ignore_ascii_case(SCHEME).then_some(key)
        }
        None => one(headers, DOWNLINK_KEY)?,
    }
}

/// The value of a header; none inside if there are several, of which nobody knows the right one.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<Option<&'a [u8]>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    Some(Some(first.as_bytes()).filter(|_| values.next().is_none()))
}
