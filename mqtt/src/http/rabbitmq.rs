//! RabbitMQ: `rabbitmq_auth_backend_http`, for clients of the MQTT plugin. Forms, or queries; `allow` or `deny`.

use axum::{
    Form,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use types::{AppId, Secret};

use super::Shared;
use crate::access::authenticator::Refusal;

/// The exchange of the MQTT plugin.
const EXCHANGE: &str = "amq.topic";
/// The virtual host in which Airlock publishes. Clients choose theirs freely.
const VHOST: &str = "/";
/// Prefix of the name of a client's queue; the client id and the quality of service follow.
const SUBSCRIPTIONS: &str = "mqtt-subscription-";
/// Prefix of the name of the queue of its will; the client id follows.
const WILLS: &str = "mqtt-will-";

#[derive(Deserialize)]
pub(super) struct User {
    username: String,
    #[serde(default)]
    password: Secret,
    /// Only the MQTT plugin sends it. Clients of other protocols have no place here.
    #[serde(default)]
    client_id: String,
}

#[derive(Deserialize)]
pub(super) struct Vhost {
    username: String,
    vhost: String,
}

#[derive(Deserialize)]
pub(super) struct Resource {
    username: String,
    vhost: String,
    resource: String,
    name: String,
    permission: String,
}

#[derive(Deserialize)]
pub(super) struct Topic {
    username: String,
    vhost: String,
    name: String,
    permission: String,
    routing_key: String,
    #[serde(default, rename = "variable_map.client_id")]
    client_id: String,
}

pub(super) async fn user(State(requests): Shared, Form(user): Form<User>) -> Response {
    let connected = requests.connect(&user.username, user.password.expose(), &user.client_id).await;
    answer(&match connected {
        Ok(_) => Ok(true),
        Err(Refusal::Invalid) => Ok(false),
        Err(refusal) => Err(refusal),
    })
}

/// Whoever is here has connected.
pub(super) async fn vhost(Form(Vhost { username, vhost }): Form<Vhost>) -> Response {
    answer(&Ok(vhost == VHOST && username.parse::<AppId>().is_ok()))
}

/// The exchange, and the queues of the client's own sessions.
pub(super) async fn resource(State(requests): Shared, Form(asked): Form<Resource>) -> Response {
    let Resource { username, vhost, resource, name, permission } = asked;
    answer(&match resource.as_str() {
        _ if vhost != VHOST => Ok(false),
        "exchange" => Ok(name == EXCHANGE && permission != "configure" && username.parse::<AppId>().is_ok()),
        "queue" => match client_of(&name) {
            Some(client_id) => requests.is_client_of(&username, client_id, permission == "read").await,
            None => Ok(false),
        },
        _ => Ok(false),
    })
}

/// Topics have dots there, and other wildcards.
pub(super) async fn topic(State(requests): Shared, Form(asked): Form<Topic>) -> Response {
    let Topic { username, vhost, name, permission, routing_key, client_id } = asked;
    let topic: String = routing_key.chars().map(of_topic).collect();
    answer(&match (name.as_str(), permission.as_str()) {
        _ if vhost != VHOST => Ok(false),
        (EXCHANGE, "write") => requests.may_publish(&username, &client_id, &topic).await,
        (EXCHANGE, "read") => requests.may_subscribe(&username, &client_id, &topic).await,
        _ => Ok(false),
    })
}

/// A letter of a routing key as that of a topic: separators change places.
fn of_topic(letter: char) -> char {
    match letter {
        '.' => '/',
        '/' => '.',
        '*' => '+',
        other => other,
    }
}

/// The client id in the name of a queue.
fn client_of(queue: &str) -> Option<&str> {
    match queue.strip_prefix(SUBSCRIPTIONS) {
        Some(rest) => rest.strip_suffix("qos0").or_else(|| rest.strip_suffix("qos1")),
        None => queue.strip_prefix(WILLS),
    }
}

fn answer(answer: &Result<bool, Refusal>) -> Response {
    match answer {
        Ok(true) => "allow".into_response(),
        Ok(false) => "deny".into_response(),
        // It refuses the client, which comes again.
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
