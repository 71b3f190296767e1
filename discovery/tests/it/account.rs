//! A fake account service that publishes one key and exchanges the access keys that a test created.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use jsonwebtoken::{
    Algorithm, EncodingKey, Header, encode,
    jwk::{Jwk, JwkSet},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use types::{AccessKey, ApplicationRight, Credential, GatewayRight, Secret};

/// The id of the account service.
pub(crate) const ISSUER: &str = "account";
/// The time of all tests, in seconds since 1970.
pub(crate) const NOW_S: u64 = 1_790_000_000;

/// The part of an account service that discovery uses.
pub(crate) struct Account {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    key: EncodingKey,
    public: JwkSet,
    /// The claims for each access key.
    exchanges: Mutex<HashMap<String, Value>>,
}

impl Account {
    pub(crate) async fn start() -> Self {
        server::system::install_crypto();
        let pair = rcgen::KeyPair::generate().unwrap();
        let key = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes()).unwrap();
        let mut public = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
        public.common.key_id = Some("k1".to_owned());
        let shared =
            Arc::new(Shared { key, public: JwkSet { keys: vec![public] }, exchanges: Mutex::new(HashMap::new()) });
        let router = Router::new()
            .route("/.well-known/jwks.json", get(keys))
            .route("/api/v2/applications/token", post(exchange))
            .route("/api/v2/applications/{app_id}/rights", get(rights))
            .route("/api/v2/gateways/{gateway_id}/rights", get(gateway_rights))
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared }
    }

    pub(crate) fn component(&self, service: &str, id: &str) -> Credential {
        self.token(json!({"type": service, "sub": id}))
    }

    /// Returns a user's token with these rights to an application.
    pub(crate) fn user(&self, app_id: &str, rights: &[&str]) -> Credential {
        self.token(json!({"scope": [format!("apps:{app_id}")], "apps": {app_id: rights}}))
    }

    /// Returns a token with these claims, and defaults for the rest.
    pub(crate) fn token(&self, claims: Value) -> Credential {
        Credential::Token(Secret::new(self.shared.sign(&claims)))
    }

    /// Creates an access key of an application with these rights.
    pub(crate) fn access_key(&self, app_id: &str, rights: &[&str]) -> Credential {
        let claims = json!({"scope": [format!("apps:{app_id}")], "apps": {app_id: rights}, "sub": app_id});
        let mut exchanges = self.shared.exchanges.lock().unwrap();
        let key = AccessKey::new(ISSUER, &format!("secret{}", exchanges.len())).unwrap();
        exchanges.insert(format!("{app_id} {}", key.expose()), claims);
        Credential::Key(key)
    }
}

impl Shared {
    fn sign(&self, claims: &Value) -> String {
        let mut all = json!({
            "iss": ISSUER, "sub": "5c0ffee5c0ffee5c0ffee5c0", "type": "user", "iat": NOW_S - 60, "exp": NOW_S + 3600,
        });
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        let header = Header { kid: Some("k1".to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, &all, &self.key).unwrap()
    }
}

async fn keys(State(shared): State<Arc<Shared>>) -> Json<JwkSet> {
    Json(shared.public.clone())
}

/// Rights to applications are never revoked here.
async fn rights() -> Json<&'static [ApplicationRight]> {
    Json(ApplicationRight::ALL)
}

/// Nobody collaborates on the gateway `lost` any more.
async fn gateway_rights(Path(gateway_id): Path<String>) -> Response {
    if gateway_id == "lost" {
        return (StatusCode::NOT_FOUND, Json(json!({"code": 404, "error": "Gateway not found"}))).into_response();
    }
    Json(GatewayRight::ALL).into_response()
}

async fn exchange(State(shared): State<Arc<Shared>>, Json(body): Json<Value>) -> Response {
    let name = format!("{} {}", body["username"].as_str().unwrap(), body["password"].as_str().unwrap());
    match shared.exchanges.lock().unwrap().get(&name) {
        Some(claims) => Json(json!({"access_token": shared.sign(claims), "expires_in": 60})).into_response(),
        None => (StatusCode::UNAUTHORIZED, Json(json!({"code": 401, "error": "Invalid key"}))).into_response(),
    }
}
