//! Mosquitto: the HTTP backend of the plugin mosquitto-go-auth, with JSON parameters, answered by status.

use axum::{Json, extract::State, http::StatusCode};
use serde::Deserialize;
use types::Secret;

use super::{Shared, is_allowed};

/// To receive a message.
const READ: u8 = 1;
/// To publish one.
const WRITE: u8 = 2;
/// To subscribe.
const SUBSCRIBE: u8 = 4;
/// To subscribe no longer.
const UNSUBSCRIBE: u8 = 8;

#[derive(Deserialize)]
pub(super) struct User {
    username: String,
    password: Secret,
    clientid: String,
}

#[derive(Deserialize)]
pub(super) struct Acl {
    username: String,
    clientid: String,
    topic: String,
    acc: u8,
}

pub(super) async fn user(State(requests): Shared, Json(user): Json<User>) -> StatusCode {
    status(requests.connect(&user.username, user.password.expose(), &user.clientid).await.is_ok())
}

/// No application is one.
pub(super) async fn superuser() -> StatusCode {
    status(false)
}

pub(super) async fn acl(State(requests): Shared, Json(asked): Json<Acl>) -> StatusCode {
    let Acl { username, clientid, topic, acc } = asked;
    status(is_allowed(&match acc {
        READ | SUBSCRIBE => requests.may_subscribe(&username, &clientid, &topic).await,
        UNSUBSCRIBE => Ok(true),
        WRITE => requests.may_publish(&username, &clientid, &topic).await,
        _ => Ok(false),
    }))
}

fn status(is_allowed: bool) -> StatusCode {
    if is_allowed { StatusCode::OK } else { StatusCode::FORBIDDEN }
}
