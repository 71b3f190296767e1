//! A running account service, and requests to it.

use std::{path::Path, sync::Arc, time::Duration};

use airlock_account::{Account, Environment, Settings};
use reqwest::{Method, RequestBuilder, StatusCode, redirect::Policy};
use serde_json::{Value, json};
use server::{
    audit::AuditLog,
    error_response::ErrorFormat,
    rate_limit::RateLimit,
    seal::{KeyOwner, SealingKeys},
    serve::{HttpService, Listeners, Server},
    system::OsRandom,
    telemetry::TelemetrySettings,
};
use store::{Embedded, Redis, RedisSettings, Store};
use testing::{FailingStore, ManualClock, RecordingStore, RedisProcess};
use tokio_util::sync::{CancellationToken, DropGuard};
use types::Timestamp;

pub(crate) const PASSWORD: &str = "correct horse battery";
const KEY: [u8; 32] = [7; 32];
/// Start of the clock: 2026-01-01.
const START_SECONDS: i64 = 1_767_225_600;

pub(crate) struct Service {
    pub(crate) account: Account,
    pub(crate) base: String,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    http: reqwest::Client,
    _stop: DropGuard,
    redis: Option<RedisProcess>,
}

#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        let clock = manual_clock();
        let store = Embedded::in_memory(clock.for_store()).unwrap();
        Self::on(settings, Arc::new(store), clock, None).await
    }

    pub(crate) async fn reopen(&self) -> Self {
        self.reopen_with(Settings::default()).await
    }

    pub(crate) async fn reopen_with(&self, settings: Settings) -> Self {
        Self::on(settings, Arc::clone(&self.store), Arc::clone(&self.clock), None).await
    }

    /// The same with this audit log.
    pub(crate) async fn reopen_audited(&self, audit: AuditLog) -> Self {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        Self::audited(Settings::default(), (store, clock, None), audit).await
    }

    pub(crate) async fn start_on(url: String) -> Self {
        let clock = manual_clock();
        Self::on(Settings::default(), connect(url, &clock).await, clock, None).await
    }

    pub(crate) fn redis_url(&self) -> Option<String> {
        self.redis.as_ref().map(RedisProcess::url)
    }

    pub(crate) async fn try_open(settings: Settings) -> Result<(), airlock_account::Error> {
        let clock = manual_clock();
        let store = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
        let keys = SealingKeys::new(KeyOwner::Account, &KEY).unwrap();
        let audit = AuditLog::without_file(clock.clone());
        Account::open(settings, keys, environment(store, &clock, audit)).await.map(drop)
    }

    pub(crate) async fn reopen_with_key(&self, key: [u8; 32]) -> Result<Account, airlock_account::Error> {
        let keys = SealingKeys::new(KeyOwner::Account, &key).unwrap();
        let audit = AuditLog::without_file(self.clock.clone());
        Account::open(Settings::default(), keys, environment(Arc::clone(&self.store), &self.clock, audit)).await
    }

    pub(crate) async fn start_on_failing_store() -> (Self, Arc<FailingStore>) {
        let clock = manual_clock();
        let store = Arc::new(FailingStore::new(clock.for_store()));
        (Self::on(Settings::default(), store.clone(), clock, None).await, store)
    }

    pub(crate) async fn start_in(file: &Path) -> Self {
        let clock = manual_clock();
        let store = Embedded::open(file, clock.for_store()).unwrap();
        Self::on(Settings::default(), Arc::new(store), clock, None).await
    }

    pub(crate) async fn start_on_each_store() -> Vec<Self> {
        Self::start_on_each_store_with(Settings::default()).await
    }

    pub(crate) async fn start_on_each_store_with(chosen: Settings) -> Vec<Self> {
        let mut all = vec![Self::start_with(chosen.clone()).await];
        if let Some(redis) = RedisProcess::start() {
            let clock = manual_clock();
            let store = connect(redis.url(), &clock).await;
            all.push(Self::on(chosen, store, clock, Some(redis)).await);
        }
        all
    }

    async fn on(
        settings: Settings,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        redis: Option<RedisProcess>,
    ) -> Self {
        let audit = AuditLog::without_file(clock.clone());
        Self::audited(settings, (store, clock, redis), audit).await
    }

    /// Starts it with an audit log that has a file.
    pub(crate) async fn start_audited(file: &Path) -> (Self, AuditLog) {
        let clock = manual_clock();
        let store = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
        let telemetry = TelemetrySettings { audit_file: Some(file.to_owned()), ..TelemetrySettings::default() };
        Self::start_audited_on(store, clock, &telemetry).await
    }

    /// The same, where each user may make a few changes only.
    pub(crate) async fn start_limited(changes: u32) -> Self {
        let clock = manual_clock();
        let store = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
        let telemetry =
            TelemetrySettings { audit_changes: RateLimit::new(changes, 60), ..TelemetrySettings::default() };
        Self::start_audited_on(store, clock, &telemetry).await.0
    }

    /// The same, on a store whose commits can be held up.
    pub(crate) async fn start_audited_recording(file: &Path) -> (Self, AuditLog, Arc<RecordingStore>) {
        let clock = manual_clock();
        let store = Arc::new(RecordingStore::new(clock.for_store()));
        let telemetry = TelemetrySettings { audit_file: Some(file.to_owned()), ..TelemetrySettings::default() };
        let (service, audit) = Self::start_audited_on(store.clone(), clock, &telemetry).await;
        (service, audit, store)
    }

    async fn start_audited_on(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        telemetry: &TelemetrySettings,
    ) -> (Self, AuditLog) {
        let audit = AuditLog::open(telemetry, clock.clone()).unwrap();
        (Self::audited(Settings::default(), (store, clock, None), audit.clone()).await, audit)
    }

    async fn audited(
        settings: Settings,
        (store, clock, redis): (Arc<dyn Store>, Arc<ManualClock>, Option<RedisProcess>),
        audit: AuditLog,
    ) -> Self {
        server::system::install_crypto();
        let keys = SealingKeys::new(KeyOwner::Account, &KEY).unwrap();
        let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listeners.addresses()[0]);
        let account = Account::open(settings, keys, environment(Arc::clone(&store), &clock, audit)).await.unwrap();
        let account = account.listening_at(base.parse().unwrap());
        let stop = CancellationToken::new();
        let server = Server::new(server::serve::ServeSettings::default(), Arc::new(OsRandom), stop.clone());
        let site = HttpService::new("account", account.router(), ErrorFormat::Account);
        drop(server.start(site, listeners));
        let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
        Self { account, base, clock, store, http, _stop: stop.drop_guard(), redis }
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn now_seconds(&self) -> u64 {
        self.clock.secs()
    }

    pub(crate) fn request(&self, method: &str, path: &str, authorization: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.http.request(method, format!("{}{path}", self.base));
        if authorization.is_empty() { request } else { request.header("authorization", authorization) }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, authorization: &str, body: Value) -> TestResponse {
        let request = self.request(method, path, authorization);
        send(if body.is_null() { request } else { request.json(&body) }).await
    }

    pub(crate) async fn get(&self, path: &str, authorization: &str) -> TestResponse {
        self.call("GET", path, authorization, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, authorization: &str, body: Value) -> TestResponse {
        self.call("POST", path, authorization, body).await
    }

    pub(crate) async fn user(&self, username: &str) -> String {
        let email = format!("{username}@example.com");
        let body = json!({"username": username, "email": email, "password": PASSWORD});
        assert_eq!(self.post("/api/v2/users", "", body).await.status, 201);
        // Without entities, it is a general token.
        bearer(&self.login(username, PASSWORD, Value::Null).await.json()["access_token"])
    }

    /// A token with every general scope, and no entity.
    pub(crate) async fn general(&self, username: &str) -> String {
        let scope = json!(["profile", "apps", "gateways", "components", "clients"]);
        bearer(&self.login(username, PASSWORD, scope).await.json()["access_token"])
    }

    pub(crate) async fn login(&self, username: &str, password: &str, scope: Value) -> TestResponse {
        let body = json!({"grant_type": "password", "username": username, "password": password, "scope": scope});
        send(self.request("POST", "/users/token", "").basic_auth("ttnctl", Some("ttnctl")).json(&body)).await
    }

    pub(crate) async fn restrict(&self, authorization: &str, scope: &[&str]) -> String {
        let response = self.post("/users/restrict-token", authorization, json!({ "scope": scope })).await;
        assert_eq!(response.status, 200, "{response:?}");
        bearer(&response.json()["access_token"])
    }

    pub(crate) async fn application(&self, authorization: &str, app_id: &str) -> String {
        let body = json!({"id": app_id, "name": "An application"});
        let response = self.post("/api/v2/applications", authorization, body).await;
        assert_eq!(response.status, 201, "{response:?}");
        self.restrict(authorization, &[&format!("apps:{app_id}")]).await
    }

    pub(crate) async fn gateway(&self, authorization: &str, gateway_id: &str) -> String {
        let body = json!({"id": gateway_id, "frequency_plan": "EU_863_870"});
        let response = self.post("/api/v2/gateways", authorization, body).await;
        assert_eq!(response.status, 201, "{response:?}");
        self.restrict(authorization, &[&format!("gateways:{gateway_id}")]).await
    }

    pub(crate) async fn handler(&self, authorization: &str, id: &str) -> String {
        let response = self.post("/api/v2/components/handlers", authorization, json!({"id": id})).await;
        assert_eq!(response.status, 201, "{response:?}");
        self.restrict(authorization, &[&format!("components:{id}")]).await
    }

    pub(crate) async fn key(&self, authorization: &str, app_id: &str, name: &str, rights: &[&str]) -> String {
        let path = format!("/api/v2/applications/{app_id}/access-keys");
        let request = self.request("POST", &path, authorization).header("accept", "application/json");
        let response = send(request.json(&json!({"name": name, "rights": rights}))).await;
        assert_eq!(response.status, 201, "{response:?}");
        response.json()["key"].as_str().unwrap().to_owned()
    }
}

impl TestResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub(crate) fn error(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["code"], self.status.as_u16(), "{self:?}");
        (self.status.as_u16(), body["error"].as_str().unwrap().to_owned())
    }
}

pub(crate) async fn send(request: RequestBuilder) -> TestResponse {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    TestResponse { status, headers, text: response.text().await.unwrap() }
}

pub(crate) fn bearer(token: &Value) -> String {
    format!("Bearer {}", token.as_str().unwrap())
}

fn environment(store: Arc<dyn Store>, clock: &Arc<ManualClock>, audit: AuditLog) -> Environment {
    Environment { store, clock: clock.clone(), random: Arc::new(OsRandom), audit }
}

fn manual_clock() -> Arc<ManualClock> {
    ManualClock::at(Timestamp::from_millis(START_SECONDS * 1000))
}

async fn connect(url: String, clock: &Arc<ManualClock>) -> Arc<dyn Store> {
    let settings = RedisSettings { urls: vec![url], ..RedisSettings::default() };
    Arc::new(Redis::connect(&settings, clock.for_store()).await.unwrap())
}
