//! One credential of every kind, and the entities that they refer to.

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};
use types::ServiceName;

use crate::service::{PASSWORD, Service};

pub(super) const NAMES: [&str; 13] = [
    "none",
    "garbage",
    "expired",
    "wrong algorithm",
    "session",
    "component",
    "foreign",
    "general",
    "entity",
    "no right",
    "restricted",
    "key",
    "other key",
];
const KEY: usize = 11;
const SESSION: usize = 4;

pub(super) struct Credentials {
    values: Vec<String>,
    gateway_keys: [String; 2],
}

pub(super) enum Shown<'a> {
    Authorization(&'a str),
    Cookie(&'a str),
}

impl Credentials {
    pub(super) async fn make(service: &Service) -> Self {
        let early = service.user("alice").await;
        for username in ["bob", "carol", "dave"] {
            service.user(username).await;
        }
        let [my, other] = ["my", "other"];
        let expired = things(service, &early, my).await;
        service.pass(3700);
        let [general, foreign, dave] = [service.general("alice"), service.general("bob"), service.general("dave")];
        let (general, foreign, dave) = (general.await, foreign.await, dave.await);
        let restricted = things(service, &general, other).await;
        let entity = named(service, &general, my).await;
        let paths = ["applications/my-app", "gateways/my-gw", "components/handlers/my-handler"];
        for (path, right) in paths.into_iter().zip(["messages:up:r", "gateway:status", "component:settings"]) {
            let path = format!("/api/v2/{path}/collaborators/dave");
            assert_eq!(service.call("PUT", &path, &entity, json!([right])).await.status, 201);
        }
        let no_right = named(service, &dave, my).await;
        let client = json!({"name": "my-client", "uri": "app://callback", "scope": ["apps"]});
        assert_eq!(service.post("/api/v2/clients", &general, client).await.status, 201);
        let key = service.key(&entity, "my-app", "reader", &["messages:up:r"]).await;
        let other_key = service.key(&restricted, "other-app", "all", &["settings", "delete", "collaborators"]).await;
        let component = service.account.component_token(ServiceName::Handler, &"ours".parse().unwrap()).await.unwrap();
        let gateway_keys =
            [gateway_key(service, "my-gw", &entity).await, gateway_key(service, "other-gw", &restricted).await];
        let values = vec![
            String::new(),
            "Bearer e30.e30.AA".to_owned(),
            expired,
            signed_with_the_public_key(service, &entity).await,
            session(service).await,
            format!("Bearer {}", component.expose()),
            foreign,
            general,
            entity,
            no_right,
            restricted,
            format!("Key {key}"),
            format!("Key {other_key}"),
        ];
        Self { values, gateway_keys }
    }

    pub(super) fn show(&self, column: usize, path: &str) -> Shown<'_> {
        match column {
            SESSION => Shown::Cookie(&self.values[column]),
            KEY.. if path.starts_with("/api/v2/gateways/") => Shown::Authorization(&self.gateway_keys[column - KEY]),
            _ => Shown::Authorization(&self.values[column]),
        }
    }
}

async fn things(service: &Service, general: &str, whose: &str) -> String {
    service.application(general, &format!("{whose}-app")).await;
    service.gateway(general, &format!("{whose}-gw")).await;
    service.handler(general, &format!("{whose}-handler")).await;
    named(service, general, whose).await
}

async fn named(service: &Service, general: &str, whose: &str) -> String {
    let scopes = [format!("apps:{whose}-app"), format!("gateways:{whose}-gw"), format!("components:{whose}-handler")];
    service.restrict(general, &scopes.each_ref().map(String::as_str)).await
}

async fn gateway_key(service: &Service, id: &str, token: &str) -> String {
    let gateway = service.get(&format!("/api/v2/gateways/{id}"), token).await.json();
    format!("Key {}", gateway["key"].as_str().unwrap())
}

async fn session(service: &Service) -> String {
    let login = json!({"username": "alice", "password": PASSWORD});
    let response = service.post("/api/v2/users/login", "", login).await;
    let cookie = response.headers["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

/// A token with these claims, forged by using the public key as an HMAC secret.
async fn signed_with_the_public_key(service: &Service, token: &str) -> String {
    let mut parts = token.trim_start_matches("Bearer ").split('.');
    let mut header: Value = serde_json::from_slice(&BASE64.decode(parts.next().unwrap()).unwrap()).unwrap();
    header["alg"] = "HS256".into();
    let text = format!("{}.{}", BASE64.encode(header.to_string()), parts.next().unwrap());
    let published = service.get("/key", "").await.json();
    let key = hmac::Key::new(hmac::HMAC_SHA256, published["key"].as_str().unwrap().as_bytes());
    format!("Bearer {text}.{}", BASE64.encode(hmac::sign(&key, text.as_bytes())))
}
