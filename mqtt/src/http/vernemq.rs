//! VerneMQ: webhooks, which can also rewrite filters, so that wildcards in the first level mean the client's own
//! application.

use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
    http::HeaderMap,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use types::Secret;

use super::{Shared, is_allowed};
use crate::access_requests::AccessRequests;

const NOT_AUTHORIZED_V5: u8 = 135;
const FAILED_V4: u8 = 128;

#[derive(Deserialize)]
pub(super) struct Hook {
    username: String,
    client_id: String,
    #[serde(default)]
    password: Secret,
    #[serde(default)]
    topic: String,
    #[serde(default)]
    topics: Vec<Topic>,
}

#[derive(Serialize, Deserialize)]
struct Topic {
    topic: String,
    qos: u8,
}

pub(super) async fn hook(
    State(requests): Shared,
    headers: HeaderMap,
    body: Result<Json<Hook>, JsonRejection>,
) -> Json<Value> {
    let name = headers.get("vernemq-hook").and_then(|name| name.to_str().ok()).unwrap_or_default();
    let Ok(Json(hook)) = body else { return refused() };
    let (username, client_id) = (hook.username.as_str(), hook.client_id.as_str());
    let is_allowed = match name {
        "auth_on_register" | "auth_on_register_m5" => {
            requests.connect(username, hook.password.expose(), client_id).await.is_ok()
        }
        "auth_on_publish" | "auth_on_publish_m5" => {
            is_allowed(&requests.may_publish(username, client_id, &hook.topic).await)
        }
        "auth_on_subscribe" => {
            let topics = narrow(&requests, &hook, FAILED_V4).await;
            return Json(json!({ "result": "ok", "topics": topics }));
        }
        "auth_on_subscribe_m5" => {
            let topics = narrow(&requests, &hook, NOT_AUTHORIZED_V5).await;
            return Json(json!({ "result": "ok", "modifiers": { "topics": topics } }));
        }
        _ => false,
    };
    if is_allowed { Json(json!({ "result": "ok" })) } else { refused() }
}

/// The filters, narrowed to the client's application; what it may not subscribe to has a code instead of a quality.
async fn narrow(requests: &AccessRequests, hook: &Hook, refused: u8) -> Vec<Topic> {
    let mut narrowed = Vec::with_capacity(hook.topics.len());
    for Topic { topic, qos } in &hook.topics {
        let filter = requests.narrow(&hook.username, &hook.client_id, topic).await.ok().flatten();
        let qos = if filter.is_some() { *qos } else { refused };
        narrowed.push(Topic { topic: filter.unwrap_or_else(|| topic.clone()), qos });
    }
    narrowed
}

fn refused() -> Json<Value> {
    Json(json!({ "result": { "error": "not_allowed" } }))
}
