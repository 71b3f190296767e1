//! A fake account service that counts calls, and an authenticator that trusts it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use client::{COMPONENT_HEADER, account::AccountClient};
use serde_json::{Value, json};
use server::auth::{AuthError, AuthSettings, Authenticator, ComponentToken, Purpose};
use testing::ManualClock;
use tokio::sync::watch;
use types::{AppId, Claims, Credential, Secret};

use crate::{
    auth::signer::{Signer, claims},
    harness::TestServer,
};

pub(crate) struct FakeAccount {
    pub(crate) signer: Mutex<Signer>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) away: AtomicBool,
    keys_read: AtomicUsize,
    exchanges: AtomicUsize,
    /// Its response about rights, and the number of calls.
    pub(crate) rights: Mutex<(StatusCode, Value)>,
    pub(crate) rights_asked: AtomicUsize,
    /// Number of calls made, and the number of them that it answers; it never answers those after.
    calls: AtomicUsize,
    answered_max: watch::Sender<usize>,
    /// The response of a proxy in front of it, in place of its own.
    proxy: Mutex<Option<(StatusCode, &'static str)>>,
    /// The components that the calls named, by token.
    pub(crate) callers: Mutex<BTreeSet<Option<String>>>,
    /// The component's token that it accepts; any if none.
    pub(crate) component: Mutex<Option<String>>,
}

impl FakeAccount {
    pub(crate) fn sign(&self, claims: &Value) -> Credential {
        Credential::Token(Secret::new(self.signer.lock().unwrap().token(claims)))
    }

    pub(crate) fn good_token(&self) -> Credential {
        self.sign(&claims(self.clock.secs()))
    }

    pub(crate) fn rights_asked(&self) -> usize {
        self.rights_asked.load(Ordering::SeqCst)
    }

    pub(crate) fn asked(&self) -> (usize, usize) {
        (self.keys_read.load(Ordering::SeqCst), self.exchanges.load(Ordering::SeqCst))
    }

    /// Takes the service away, so that it answers nothing, or brings it back.
    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// Answers this many further calls; those after wait until it is called again.
    pub(crate) fn answer_further(&self, number: usize) {
        self.answered_max.send_replace(self.calls.load(Ordering::SeqCst) + number);
    }

    /// Answers one of the calls that wait.
    pub(crate) fn answer_one(&self) {
        self.answered_max.send_modify(|max| *max += 1);
    }

    /// Waits until it has been called this often, and fails if it has been more often.
    pub(crate) async fn called(&self, times: usize) {
        loop {
            let calls = self.calls.load(Ordering::SeqCst);
            assert!(calls <= times, "{calls} calls instead of {times}");
            if calls == times {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Has a proxy answer in its place.
    pub(crate) fn set_proxy(&self, answer: Option<(StatusCode, &'static str)>) {
        *self.proxy.lock().unwrap() = answer;
    }

    pub(crate) fn set_rights(&self, status: StatusCode, body: Value) {
        *self.rights.lock().unwrap() = (status, body);
    }

    fn is_away(&self) -> Option<Response> {
        self.away.load(Ordering::SeqCst).then(|| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }
}

async fn keys(State(account): State<Arc<FakeAccount>>) -> Response {
    account.keys_read.fetch_add(1, Ordering::SeqCst);
    if let Some(away) = account.is_away() {
        return away;
    }
    Json(account.signer.lock().unwrap().key_set()).into_response()
}

/// Accepts one key of one application, from one component.
async fn exchange(State(account): State<Arc<FakeAccount>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    account.exchanges.fetch_add(1, Ordering::SeqCst);
    if let Some(away) = account.is_away() {
        return away;
    }
    let refused = (StatusCode::UNAUTHORIZED, Json(json!({ "code": 401, "error": "no" })));
    if let Some(component) = account.component.lock().unwrap().as_ref() {
        let sent = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
        if sent != Some(format!("Bearer {component}")) {
            return ([(header::WWW_AUTHENTICATE, "Bearer")], refused).into_response();
        }
    }
    if (&body["username"], &body["password"]) != (&json!("my-app"), &json!("account.good")) {
        return refused.into_response();
    }
    let token = account.signer.lock().unwrap().token(&claims(account.clock.secs()));
    Json(json!({ "access_token": token, "expires_in": 3600 })).into_response()
}

/// Lets a proxy answer, or waits until this call is answered.
async fn in_turn(State(account): State<Arc<FakeAccount>>, request: Request, next: Next) -> Response {
    let number = account.calls.fetch_add(1, Ordering::SeqCst) + 1;
    let caller = request.headers().get(COMPONENT_HEADER).map(|token| token.to_str().unwrap().to_owned());
    account.callers.lock().unwrap().insert(caller);
    account.answered_max.subscribe().wait_for(|max| number <= *max).await.unwrap();
    let proxy = *account.proxy.lock().unwrap();
    match proxy {
        Some((status, text)) => (status, [(header::WWW_AUTHENTICATE, "Basic")], text).into_response(),
        None => next.run(request).await,
    }
}

async fn rights(State(account): State<Arc<FakeAccount>>) -> Response {
    account.rights_asked.fetch_add(1, Ordering::SeqCst);
    if let Some(away) = account.is_away() {
        return away;
    }
    let (status, body) = account.rights.lock().unwrap().clone();
    (status, Json(body)).into_response()
}

pub(crate) struct Fixture {
    pub(crate) account: Arc<FakeAccount>,
    /// The authenticator's clock, which is the account service's too unless a test has another.
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) authenticator: Authenticator,
    pub(crate) client: AccountClient,
    _server: TestServer,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let clock = ManualClock::new();
        Self::with(AuthSettings::default(), Arc::clone(&clock), clock, None).await
    }

    /// With a clock of the authenticator's own, and its component's token.
    pub(crate) async fn with(
        settings: AuthSettings,
        clock: Arc<ManualClock>,
        account_clock: Arc<ManualClock>,
        component: Option<&Arc<ComponentToken>>,
    ) -> Self {
        let account = Arc::new(FakeAccount {
            signer: Mutex::new(Signer::new("k1")),
            clock: account_clock,
            away: AtomicBool::new(false),
            keys_read: AtomicUsize::new(0),
            exchanges: AtomicUsize::new(0),
            rights: Mutex::new((StatusCode::OK, json!(["settings", "devices"]))),
            rights_asked: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            answered_max: watch::Sender::new(usize::MAX),
            proxy: Mutex::default(),
            callers: Mutex::default(),
            component: Mutex::default(),
        });
        let router = Router::new()
            .route("/.well-known/jwks.json", get(keys))
            .route("/api/v2/applications/token", post(exchange))
            .route("/api/v2/applications/my-app/rights", get(rights))
            .route("/api/v2/gateways/my-gateway/rights", get(rights))
            .layer(from_fn_with_state(Arc::clone(&account), in_turn))
            .with_state(Arc::clone(&account));
        let server = TestServer::plain(router).await;
        let client = AccountClient::new(&server.url("")).unwrap();
        let issuers = BTreeMap::from([("account".to_owned(), client.clone().into())]);
        let authenticator = Authenticator::new(issuers, component, settings, Arc::<ManualClock>::clone(&clock));
        Self { account, clock, authenticator, client, _server: server }
    }

    /// Authenticates with a token alone.
    pub(crate) async fn with_token(&self, token: Credential) -> Result<(), AuthError> {
        self.authenticator.authenticate(Some(token), Purpose::Live).await.map(|_| ())
    }

    /// Authenticates with an access key of the application.
    pub(crate) async fn with_key(&self, key: &str) -> Result<(), AuthError> {
        self.ask(&Credential::from_key(key).unwrap(), Purpose::Read).await.map(|_| ())
    }

    pub(crate) async fn ask(&self, credential: &Credential, purpose: Purpose) -> Result<Claims, AuthError> {
        self.authenticator.authenticate_for(&app_id(), Some(credential.clone()), purpose).await
    }
}

pub(crate) fn app_id() -> AppId {
    "my-app".parse().unwrap()
}
