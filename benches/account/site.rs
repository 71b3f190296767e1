//! The account service under test, and the requests to it.

use std::{net::SocketAddr, sync::Arc};

use airlock_account::{Account, Environment, RateLimits, Settings};
use api::rest::account::NewUser;
use serde_json::{Value, json};
use server::{
    audit::AuditLog,
    error_response::ErrorFormat,
    rate_limit::RateLimit,
    seal::{KeyOwner, SealingKeys},
    serve::{HttpService, Listeners, Server},
    system::{OsRandom, SystemClock, install_crypto},
};
use store::{Embedded, StoreClock};
use tokio_util::sync::{CancellationToken, DropGuard};
use types::{Clock as _, Secret};

const PASSWORD: &str = "correct horse battery";

pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) get: Vec<u8>,
    pub(crate) me: Vec<u8>,
    pub(crate) exchange: Vec<u8>,
    pub(crate) login: Vec<u8>,
    _dir: tempfile::TempDir,
    _stop: DropGuard,
}

impl Site {
    pub(crate) async fn start() -> Self {
        install_crypto();
        let dir = tempfile::tempdir().unwrap();
        let clock = StoreClock::new(|| SystemClock.now().as_unix_ms());
        let store = Arc::new(Embedded::open(&dir.path().join("store.redb"), clock).unwrap());
        let limit = RateLimit { burst: 1_000_000, per_hour: 1_000_000 };
        let limits =
            RateLimits { login: limit, user: limit, address: limit, registration: limit, mail: limit, username: limit };
        let (settings, keys) = (
            Settings { rate_limits: limits, ..Settings::default() },
            SealingKeys::new(KeyOwner::Account, &[7; 32]).unwrap(),
        );
        let (clock, random) = (Arc::new(SystemClock), Arc::new(OsRandom));
        let audit = AuditLog::without_file(clock.clone());
        let account = Account::open(settings, keys, Environment { store, clock, random, audit }).await.unwrap();
        let (username, email) = ("alice".parse().unwrap(), "alice@example.com".to_owned());
        account.add_user(NewUser { username, email, password: Secret::new(PASSWORD) }).await.unwrap();
        let stop = CancellationToken::new();
        let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
        let address = listeners.addresses()[0];
        let server = Server::new(server::serve::ServeSettings::default(), Arc::new(OsRandom), stop.clone());
        drop(server.start(HttpService::new("account", account.router(), ErrorFormat::Account), listeners));
        let login = json!({
            "grant_type": "password", "username": "alice", "password": PASSWORD,
            "client_id": "ttnctl", "client_secret": "ttnctl",
        });
        let post = async |path: &str, token: &str, body: &Value| post(address, path, token, body).await;
        let general = text(&post("/users/token", "", &login).await["access_token"]);
        let app = json!({"id": "my-app", "name": "An application"});
        let key = text(&post("/api/v2/applications", &general, &app).await["access_keys"][0]["key"]);
        let scope = json!({"scope": ["apps:my-app"]});
        let token = text(&post("/users/restrict-token", &general, &scope).await["access_token"]);
        let exchange = json!({"username": "my-app", "password": key});
        Self {
            address,
            get: request("GET", "/api/v2/applications/my-app", &token, ""),
            me: request("GET", "/api/v2/users/me", &general, ""),
            exchange: request("POST", "/api/v2/applications/token", "", &exchange.to_string()),
            login: request("POST", "/users/token", "", &login.to_string()),
            _dir: dir,
            _stop: stop.drop_guard(),
        }
    }
}

async fn post(address: SocketAddr, path: &str, token: &str, body: &Value) -> Value {
    let request = reqwest::Client::new().post(format!("http://{address}{path}")).json(body);
    let request = if token.is_empty() { request } else { request.bearer_auth(token) };
    let response = request.send().await.unwrap().error_for_status().unwrap();
    response.json().await.unwrap()
}

fn request(method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    let authorization = if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: bench\r\n{authorization}content-type: application/json\r\n");
    format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
