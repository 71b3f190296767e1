//! A stand-in for an OpenID Connect provider, which signs for real and checks what the specification has it check.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use airlock_account::{ProviderSettings, Settings};
use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
    },
};
use axum::{
    Form, Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use reqwest::Url;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::AbortHandle};

pub(super) const CLIENT_ID: &str = "airlock";
pub(super) const CLIENT_SECRET: &str = "between airlock & its provider";
const ACCESS_TOKEN: &str = "opens-the-profile";

/// A stand-in for a provider; it ends when this is dropped.
pub(super) struct StandIn {
    pub(super) issuer: String,
    state: Arc<Mutex<ProviderState>>,
    task: AbortHandle,
    dir: TempDir,
}

struct ProviderState {
    issuer: String,
    /// The key with which tokens are signed.
    signing: Key,
    /// The keys that are published.
    published: Vec<Value>,
    /// The request that was made with each code.
    codes: BTreeMap<String, Asked>,
    count: usize,
    user_info: Value,
    is_away: bool,
    /// Runs before it answers a call.
    delay: Box<dyn Fn() + Send>,
    calls: usize,
}

struct Asked {
    redirect_uri: String,
    challenge: String,
    claims: Value,
}

pub(super) struct Key {
    id: String,
    pair: Pair,
}

enum Pair {
    Elliptic(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl StandIn {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let signing = Key::elliptic("first");
        let published = vec![signing.public()];
        let state = Arc::new(Mutex::new(ProviderState {
            issuer: issuer.clone(),
            signing,
            published,
            codes: BTreeMap::new(),
            count: 0,
            user_info: Value::Null,
            is_away: false,
            delay: Box::new(|| {}),
            calls: 0,
        }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(description))
            .route("/token", post(token))
            .route("/keys", get(keys))
            .route("/userinfo", get(user_info))
            .with_state(state.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }).abort_handle();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("secret"), CLIENT_SECRET).unwrap();
        Self { issuer, state, task, dir }
    }

    /// The settings of an account service that trusts it.
    pub(super) fn settings(&self, create_users: bool) -> Settings {
        let provider = self.provider(create_users);
        let login_providers = [("example".parse().unwrap(), provider)].into();
        Settings { login_providers, ..Settings::default() }
    }

    pub(super) fn provider(&self, create_users: bool) -> ProviderSettings {
        ProviderSettings {
            title: "Example".to_owned(),
            issuer: self.issuer.clone(),
            client_id: CLIENT_ID.to_owned(),
            client_secret_file: Some(self.secret_file()),
            scope: "openid profile email".to_owned(),
            create_users,
        }
    }

    pub(super) fn secret_file(&self) -> PathBuf {
        self.dir.path().join("secret")
    }

    /// A user logs in at the address to which a browser was sent. Returns the address to which it is sent back.
    ///
    /// The claims are added to those of every ID token; `null` removes one.
    pub(super) fn log_in(&self, url: &str, now_s: u64, claims: &Value) -> Url {
        let url = Url::parse(url).unwrap();
        assert_eq!(url.path(), "/authorize", "{url}");
        let given = |wanted: &str| {
            let mut all = url.query_pairs().filter(|(name, _)| name == wanted);
            let value = all.next().unwrap_or_else(|| panic!("{wanted} is missing in {url}")).1.into_owned();
            assert!(all.next().is_none(), "{wanted} is there twice in {url}");
            value
        };
        assert_eq!((given("response_type"), given("client_id")), ("code".to_owned(), CLIENT_ID.to_owned()));
        assert_eq!(given("code_challenge_method"), "S256");
        assert!(given("scope").split(' ').any(|scope| scope == "openid"));
        let mut all = json!({"iss": self.issuer, "sub": "subject-1", "aud": CLIENT_ID, "exp": now_s + 300,
            "iat": now_s, "nonce": given("nonce")});
        for (name, value) in claims.as_object().unwrap() {
            match value {
                Value::Null => drop(all.as_object_mut().unwrap().remove(name)),
                value => all[name] = value.clone(),
            }
        }
        let mut known = self.lock();
        known.count += 1;
        let code = format!("code-{}", known.count);
        let asked = Asked { redirect_uri: given("redirect_uri"), challenge: given("code_challenge"), claims: all };
        let mut back = Url::parse(&asked.redirect_uri).unwrap();
        back.query_pairs_mut().extend_pairs([("code", code.as_str()), ("state", &given("state"))]);
        known.codes.insert(code, asked);
        back
    }

    /// Signs with this key from now on.
    pub(super) fn sign_with(&self, key: Key) {
        self.lock().signing = key;
    }

    /// Publishes the key with which tokens are signed, and no other.
    pub(super) fn publish(&self) {
        let mut known = self.lock();
        known.published = vec![known.signing.public()];
    }

    /// Publishes another key only.
    pub(super) fn publish_instead(&self, key: &Key) {
        self.lock().published = vec![key.public()];
    }

    pub(super) fn set_user_info(&self, profile: Value) {
        self.lock().user_info = profile;
    }

    pub(super) fn describe_as(&self, issuer: &str) {
        issuer.clone_into(&mut self.lock().issuer);
    }

    pub(super) fn set_away(&self, is_away: bool) {
        self.lock().is_away = is_away;
    }

    /// It is away from now on, which callers learn after this.
    pub(super) fn set_away_after(&self, delay: impl Fn() + Send + 'static) {
        let mut known = self.lock();
        (known.is_away, known.delay) = (true, Box::new(delay));
    }

    /// Number of requests for its description and its keys.
    pub(super) fn calls(&self) -> usize {
        self.lock().calls
    }

    fn lock(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ProviderState {
    /// Counts a call. Returns false while it is away.
    fn answers(&mut self) -> bool {
        self.calls += 1;
        (self.delay)();
        !self.is_away
    }
}

impl Key {
    pub(super) fn elliptic(id: &str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        Self { id: id.to_owned(), pair: Pair::Elliptic(pair) }
    }

    pub(super) fn rsa(id: &str) -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        Self { id: id.to_owned(), pair: Pair::Rsa(Box::new(pair)) }
    }

    fn algorithm(&self) -> &'static str {
        match &self.pair {
            Pair::Elliptic(_) => "ES256",
            Pair::Rsa(_) => "RS256",
        }
    }

    fn public(&self) -> Value {
        let mut key = match &self.pair {
            Pair::Elliptic(pair) => {
                // The point, uncompressed: a byte that says so, then both coordinates.
                let point: &[u8] = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)})
            }
            Pair::Rsa(pair) => {
                let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode(n), "e": URL_SAFE_NO_PAD.encode(e)})
            }
        };
        key["kid"] = json!(self.id);
        key["use"] = json!("sig");
        key["alg"] = json!(self.algorithm());
        key
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm(), "kid": self.id, "typ": "JWT"});
        let text = signing_input(&header, claims);
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Elliptic(pair) => pair.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn signing_input(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

async fn description(State(state): State<Arc<Mutex<ProviderState>>>) -> Response {
    let mut known = state.lock().unwrap();
    if !known.answers() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let issuer = &known.issuer;
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
    }))
    .into_response()
}

async fn keys(State(state): State<Arc<Mutex<ProviderState>>>) -> Response {
    let mut known = state.lock().unwrap();
    if !known.answers() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    Json(json!({"keys": known.published})).into_response()
}

async fn token(
    State(state): State<Arc<Mutex<ProviderState>>>,
    headers: HeaderMap,
    Form(form): Form<BTreeMap<String, String>>,
) -> Response {
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response();
    // As the specification has it, both parts are encoded like those of a form.
    let credentials = format!("{CLIENT_ID}:between%20airlock%20%26%20its%20provider");
    if headers[AUTHORIZATION] != format!("Basic {}", STANDARD.encode(credentials)) {
        return refused("invalid_client");
    }
    let mut known = state.lock().unwrap();
    let Some(asked) = known.codes.remove(&form["code"]) else { return refused("invalid_grant") };
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()));
    if challenge != asked.challenge || form["redirect_uri"] != asked.redirect_uri {
        return refused("invalid_grant");
    }
    let id_token = match asked.claims["alg"].as_str() {
        Some("none") => format!("{}.", signing_input(&json!({"alg": "none"}), &asked.claims)),
        Some("HS256") => with_secret(&asked.claims),
        _ => known.signing.sign(&asked.claims),
    };
    Json(json!({"token_type": "Bearer", "access_token": ACCESS_TOKEN, "id_token": id_token})).into_response()
}

/// A token that everybody can sign who knows the client's secret.
fn with_secret(claims: &Value) -> String {
    let text = signing_input(&json!({"alg": "HS256"}), claims);
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, CLIENT_SECRET.as_bytes());
    let signature = aws_lc_rs::hmac::sign(&key, text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

async fn user_info(State(state): State<Arc<Mutex<ProviderState>>>, headers: HeaderMap) -> Response {
    if headers[AUTHORIZATION] != format!("Bearer {ACCESS_TOKEN}") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    Json(state.lock().unwrap().user_info.clone()).into_response()
}
