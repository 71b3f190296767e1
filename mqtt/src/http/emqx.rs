//! EMQX 5: its HTTP authenticator and HTTP authorizer. What is not answered with 200 it ignores, so whatever cannot be
//! allowed is denied in so many words.

use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
};
use serde::Deserialize;
use serde_json::{Value, json};
use types::Secret;

use super::{Shared, is_allowed};

#[derive(Deserialize)]
pub(super) struct Authentication {
    username: String,
    password: Secret,
    clientid: String,
}

#[derive(Deserialize)]
pub(super) struct Authorization {
    username: String,
    clientid: String,
    action: String,
    topic: String,
}

pub(super) async fn authentication(
    State(requests): Shared,
    body: Result<Json<Authentication>, JsonRejection>,
) -> Json<Value> {
    let Ok(Json(Authentication { username, password, clientid })) = body else { return answer(false) };
    match requests.connect(&username, password.expose(), &clientid).await {
        // EMQX ends the connection then. Releases before 5.8 ignore it.
        Ok(Some(expires)) => Json(json!({ "result": "allow", "is_superuser": false, "expire_at": expires })),
        connected => answer(connected.is_ok()),
    }
}

pub(super) async fn authorization(
    State(requests): Shared,
    body: Result<Json<Authorization>, JsonRejection>,
) -> Json<Value> {
    let Ok(Json(Authorization { username, clientid, action, topic })) = body else { return answer(false) };
    answer(is_allowed(&match action.as_str() {
        "publish" => requests.may_publish(&username, &clientid, &topic).await,
        "subscribe" => requests.may_subscribe(&username, &clientid, &topic).await,
        _ => Ok(false),
    }))
}

fn answer(is_allowed: bool) -> Json<Value> {
    let result = if is_allowed { "allow" } else { "deny" };
    Json(json!({ "result": result, "is_superuser": false }))
}
