//! VerneMQ: webhooks, which can also rewrite filters, so that wildcards in the first level mean the client's own
//! application.

use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
    http::HeaderMap,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use types::Secret;

use super::{Shared, is_allowed};
use crate::http::requests::AccessRequests;

const FAILED: u8 = 128;

#[derive(Deserialize)]
pub(super) struct Hook {
    username: String,
    client_id: String,
    #[serde(default)]
    password: Secret,
    #[serde(default)]
    topic: String,
    #[serde(default)]
    topics: Vec<HookTopic>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum HookTopic {
    /// For the end of a subscription.
    Filter(String),
    Subscription(Subscription),
}

#[derive(Clone, Serialize, Deserialize)]
struct Subscription {
    topic: String,
    qos: u8,
    /// The other options of MQTT 5, which would have their defaults otherwise.
    #[serde(flatten)]
    options: Map<String, Value>,
}

pub(super) async fn hook(
    State(requests): Shared,
    headers: HeaderMap,
    body: Result<Json<Hook>, JsonRejection>,
) -> Json<Value> {
    let name = headers.get("vernemq-hook").and_then(|name| name.to_str().ok()).unwrap_or_default();
    let Ok(Json(hook)) = body else { return refused() };
    let (username, client_id) = (hook.username.as_str(), hook.client_id.as_str());
    let (hook_name, is_v5) = name.strip_suffix("_m5").map_or((name, false), |name| (name, true));
    let is_allowed = match hook_name {
        "auth_on_register" => requests.connect(username, hook.password.expose(), client_id).await.is_ok(),
        "auth_on_publish" => is_allowed(&requests.may_publish(username, client_id, &hook.topic).await),
        "auth_on_subscribe" => match narrow(&requests, &hook, is_v5).await {
            Some(topics) => return with_topics(&topics, is_v5),
            None => false,
        },
        "on_unsubscribe" => return with_topics(&narrowed_as_before(&requests, &hook).await, is_v5),
        _ => false,
    };
    if is_allowed { Json(json!({ "result": "ok" })) } else { refused() }
}

/// The filters, narrowed to the client's application. With MQTT 5 none if one of them is refused: releases before 2.2.0
/// tell the client so, and subscribe it nevertheless. Before MQTT 5 the refused ones have a code instead of a quality.
async fn narrow(requests: &AccessRequests, hook: &Hook, is_v5: bool) -> Option<Vec<Subscription>> {
    let mut narrowed = Vec::with_capacity(hook.topics.len());
    for asked in &hook.topics {
        let HookTopic::Subscription(asked) = asked else { return None };
        let filter = requests.narrow(&hook.username, &hook.client_id, &asked.topic).await.ok().flatten();
        narrowed.push(match filter {
            Some(topic) => Subscription { topic, ..asked.clone() },
            None if is_v5 => return None,
            None => Subscription { qos: FAILED, ..asked.clone() },
        });
    }
    // An empty list would leave the client's own as they are.
    (!narrowed.is_empty()).then_some(narrowed)
}

/// The filters as they were narrowed when the client subscribed.
async fn narrowed_as_before(requests: &AccessRequests, hook: &Hook) -> Vec<String> {
    let mut filters = Vec::with_capacity(hook.topics.len());
    for asked in &hook.topics {
        let (HookTopic::Filter(filter) | HookTopic::Subscription(Subscription { topic: filter, .. })) = asked;
        let narrowed = requests.narrow(&hook.username, &hook.client_id, filter).await.ok().flatten();
        filters.push(narrowed.unwrap_or_else(|| filter.clone()));
    }
    filters
}

fn with_topics(topics: &impl Serialize, is_v5: bool) -> Json<Value> {
    Json(match is_v5 {
        true => json!({ "result": "ok", "modifiers": { "topics": topics } }),
        false => json!({ "result": "ok", "topics": topics }),
    })
}

fn refused() -> Json<Value> {
    Json(json!({ "result": { "error": "not_allowed" } }))
}
