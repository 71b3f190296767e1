//! The account service is frozen, gone, or answers 503: what it confirmed goes on, and nothing else does.

use std::{
    io::{BufRead, BufReader, Lines},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
};

use airlock::{
    serve::{Service, Stack},
    settings::Settings,
};
use api::rest::account::{NewAccessKey, NewUser};
use client::{
    account::{AccountClient, ClientCredentials},
    data::DataClient,
};
use serde_json::{Value, json};
use server::system::SystemClock;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use types::{ApplicationRight, Clock, Credential, Kind, Kinded, Scope, Secret};

use super::{Caller, soon};
use crate::{
    devices::joins::network_broker::BROKER,
    harness::{MESSAGE_TIMEOUT, Network, Owner, PASSWORD, airlock, environment_at, next},
};
use testing::MqttClient;

/// Address on which no other process gets a port, so that this one is still free after a restart.
const HOST: &str = "127.66.0.1";

/// `airlock serve account` in a process of its own, always on the same port.
pub(super) struct AccountProcess {
    child: Child,
    port: u16,
    dir: TempDir,
    /// Kept open, because the process fails to report its stop otherwise.
    output: Lines<BufReader<ChildStdout>>,
}

impl AccountProcess {
    pub(super) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind((HOST, 0)).unwrap().local_addr().unwrap().port();
        let (child, output) = serve(dir.path(), port);
        Self { child, port, dir, output }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{HOST}:{}", self.port)
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn token_file(&self) -> PathBuf {
        self.dir.path().join("handler.token")
    }

    /// Copies the handler's token to where the handler reads it, as an operator does.
    pub(super) fn copy_token(&self, to: &Path) {
        std::fs::copy(self.token_file(), to.join("copied.token")).unwrap();
    }

    /// Suspends it: it neither answers nor closes its connections.
    pub(super) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(super) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn start_again(&mut self) {
        (self.child, self.output) = serve(self.dir.path(), self.port);
    }
}

impl Drop for AccountProcess {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn serve(dir: &Path, port: u16) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = airlock(dir);
    command.env("AIRLOCK_LISTEN__ACCOUNT", format!("{HOST}:{port}"));
    command.env("AIRLOCK_TELEMETRY__LISTEN", "127.0.0.1:0");
    let mut child = command.args(["serve", "account"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_ready = output.by_ref().map_while(Result::ok).any(|line| line.contains("Airlock is ready"));
    assert!(is_ready, "the account service did not start");
    (child, output)
}

/// Discovery and handler in this process, with the account service in another.
pub(super) struct Services {
    pub(super) account: AccountProcess,
    pub(super) network: Network,
    pub(super) owner: Owner,
    discovery: Stack,
    _discovery_dir: TempDir,
}

impl Services {
    pub(super) async fn start(grace_time_s: u64) -> Self {
        Self::start_at(Arc::new(SystemClock), grace_time_s).await
    }

    /// With this clock in the handler and the discovery service.
    pub(super) async fn start_at(clock: Arc<dyn Clock>, grace_time_s: u64) -> Self {
        server::system::install_crypto();
        let account = AccountProcess::start();
        let (discovery_dir, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let settings = |dir: &Path| {
            let mut settings = Network::settings(dir);
            settings.client.auth_server = account.url();
            settings.auth.grace_time_s = grace_time_s;
            settings.broker.check_interval_ms = 100;
            settings.handler.network_brokers = vec![BROKER.parse().unwrap()];
            settings.tls.mode = airlock::settings::TlsMode::Off;
            settings
        };
        let start = |settings: Settings, service| Stack::start(settings, Some(service), environment_at(clock.clone()));
        let discovery = start(settings(discovery_dir.path()), Service::Discovery).await.unwrap();
        let mut settings = settings(dir.path());
        settings.client.discovery_address = discovery.settings().client.discovery_address.clone();
        settings.handler.token_file = Some(dir.path().join("copied.token"));
        account.copy_token(dir.path());
        let stack = start(settings, Service::Handler).await.unwrap();
        let network = Network { stack, dir };
        let owner = network.owner("steady").await;
        owner.set_functions(["function Decoder(bytes) { return { n: bytes[0] }; }", "", ""]).await.unwrap();
        owner.add_device("dev-1").await;
        Self { account, network, owner, discovery, _discovery_dir: discovery_dir }
    }

    /// The status of reading the application with a credential.
    pub(super) async fn read(&self, credential: &Credential) -> u16 {
        self.ask(credential, "GET", "", String::new()).await
    }

    pub(super) async fn uplink(&self) -> u16 {
        let body = json!({"payload": "Bw==", "port": 1}).to_string();
        self.ask(&self.owner.token, "POST", "/devices/dev-1/simulate", body).await
    }

    /// Sends an uplink, which must be accepted; returns the outcome, or null if the response has only the cost.
    async fn uplink_outcome(&self) -> Value {
        let url = format!("{}/applications/{}/devices/dev-1/simulate", self.network.handler_http(), self.owner.app_id);
        let body = json!({"payload": "Bw==", "port": 1}).to_string();
        let (status, mut body) = Caller::new(&self.owner.token).ask("POST", &url, body).await;
        assert_eq!(status, 200, "{body}");
        body["outcome"].take()
    }

    pub(super) async fn change(&self) -> u16 {
        let body = json!({"app_id": self.owner.app_id, "decoder": "function Decoder(b) { return { n: b[0] }; }"});
        self.ask(&self.owner.token, "PUT", "", body.to_string()).await
    }

    /// The statuses of filling, clearing and listing the queue of a device over REST.
    async fn queue(&self) -> [u16; 3] {
        let (token, path) = (&self.owner.token, "/devices/dev-1/downlinks");
        let downlink = json!({"payload_raw": "AQ=="}).to_string();
        let filled = self.ask(token, "POST", path, downlink).await;
        [
            filled,
            self.ask(token, "DELETE", path, String::new()).await,
            self.ask(token, "GET", path, String::new()).await,
        ]
    }

    async fn ask(&self, credential: &Credential, method: &str, path: &str, body: String) -> u16 {
        let url = format!("{}/applications/{}{path}", self.network.handler_http(), self.owner.app_id);
        Caller::new(credential).ask(method, &url, body).await.0
    }

    /// The text of the error when the application is read.
    async fn reason(&self, credential: &Credential) -> String {
        let url = format!("{}/applications/{}", self.network.handler_http(), self.owner.app_id);
        let request = reqwest::Client::new().get(url).header("authorization", credential.to_header());
        request.send().await.unwrap().text().await.unwrap()
    }

    /// The status of `/readyz`, and what it says about the handler's token.
    pub(super) async fn readiness(&self) -> (u16, String) {
        let overview = self.network.stack.overview();
        let metrics = overview.split_whitespace().find(|word| word.ends_with("/metrics")).unwrap();
        let response = reqwest::get(metrics.replace("/metrics", "/readyz")).await.unwrap();
        let (status, report): (_, Value) = (response.status(), response.json().await.unwrap());
        (status.as_u16(), report["checks"]["component_token"].as_str().unwrap().to_owned())
    }

    pub(super) fn accounts(&self) -> AccountClient {
        AccountClient::new(&self.account.url()).unwrap()
    }

    /// A new access key of the application, which the handler has not seen.
    pub(super) async fn new_key(&self, name: &str, owner: &Credential) -> Credential {
        let new = NewAccessKey { name: name.to_owned(), rights: vec![ApplicationRight::Settings] };
        let created = self.accounts().add_access_key(owner, &self.owner.app_id, &new).await.unwrap();
        Credential::Key(created.key.unwrap())
    }

    /// The token of a collaborator that the handler confirmed, and then learned was removed.
    async fn removed_collaborator(&self) -> Credential {
        let (accounts, app_id) = (self.accounts(), &self.owner.app_id);
        let (username, password) = ("gone".parse().unwrap(), Secret::new(PASSWORD));
        let email = "gone@example.com".to_owned();
        accounts.register_user(&NewUser { username, email, password: password.clone() }).await.unwrap();
        let username = "gone".parse().unwrap();
        let rights = [ApplicationRight::Settings];
        accounts.set_collaborator(&self.owner.token, app_id, &username, &rights).await.unwrap();
        let client = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
        let token = accounts.password_token(&client, &username, &password, &[]).await.unwrap().access_token;
        let token = accounts.restrict_token(&token, &[Scope::App(app_id.clone())]).await.unwrap();
        let token = Credential::Token(token);
        assert_eq!(self.read(&token).await, 200);
        accounts.delete_collaborator(&self.owner.token, app_id, &username).await.unwrap();
        soon(403, async || self.read(&token).await).await;
        token
    }

    async fn subscriber(&self) -> MqttClient {
        self.owner.listen(&self.network).await
    }

    pub(super) async fn stop(self) {
        self.network.stack.stop().await;
        self.discovery.stop().await;
    }
}

/// Checks what each credential may do while the account service cannot be asked, shortly after it could.
async fn confirmed_goes_on(services: &Services, listener: &mut MqttClient, removed: &Credential, unseen: &Credential) {
    // A response counts as fresh for two seconds.
    soon(503, async || services.change().await).await;
    assert_eq!(services.read(&services.owner.token).await, 200);
    assert_eq!(services.uplink_outcome().await["fields"], json!(r#"{"n":7}"#));
    let (topic, message) = next(listener).await;
    assert_eq!((topic.as_str(), &message["payload_fields"]), ("dev-1/up", &json!({"n": 7})));
    // Over REST a downlink is a change, like clearing the queue; over MQTT it goes on with its connection.
    assert_eq!(services.queue().await, [503, 503, 200]);
    let topic = format!("{}/devices/dev-1/down", services.owner.app_id);
    listener.publish(&topic, r#"{"port":1,"payload_raw":"AQ=="}"#).await;
    let mut topics = [next(listener).await.0, next(listener).await.0];
    topics.sort();
    assert_eq!(topics, ["dev-1/down", "dev-1/events/down/scheduled"]);
    for (credential, why) in [(removed, "was refused when it was last checked"), (unseen, "was never confirmed here")] {
        // Each credential was last checked at another time.
        soon(503, async || services.read(credential).await).await;
        let text = services.reason(credential).await;
        assert!(text.contains(why) && text.contains("account service"), "{text}");
        let refused = DataClient::connect(&services.network.mqtt(), &services.owner.app_id, credential).await;
        assert_eq!(refused.err().map(|error| error.kind()), Some(Kind::Unavailable));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_goes_on_however_the_account_service_is_away() {
    let mut services = Services::start(600).await;
    let removed = services.removed_collaborator().await;
    let unseen = services.new_key("unseen", &services.owner.token).await;
    let mut listener = services.subscriber().await;
    assert_eq!((services.read(&services.owner.token).await, services.uplink().await), (200, 200));
    next(&mut listener).await;

    services.account.freeze();
    confirmed_goes_on(&services, &mut listener, &removed, &unseen).await;
    services.account.thaw();
    soon(200, async || services.change().await).await;
    soon(403, async || services.read(&removed).await).await;
    assert_eq!(services.queue().await, [200, 200, 200]);
    assert_eq!(next(&mut listener).await.0, "dev-1/events/down/scheduled");

    services.account.kill();
    confirmed_goes_on(&services, &mut listener, &removed, &unseen).await;

    // It closes every connection, so that none outlives it.
    let busy = async || ([("connection", "close")], axum::http::StatusCode::SERVICE_UNAVAILABLE);
    let busy = axum::Router::new().fallback(busy);
    let socket = tokio::net::TcpListener::bind((HOST, services.account.port)).await.unwrap();
    let serving = tokio::spawn(axum::serve(socket, busy).into_future());
    confirmed_goes_on(&services, &mut listener, &removed, &unseen).await;
    serving.abort();
    // Its socket is closed when it has ended, which is what the abort reports.
    serving.await.unwrap_err();

    services.account.start_again();
    soon(200, async || services.change().await).await;
    soon(200, async || services.read(&unseen).await).await;
    soon(403, async || services.read(&removed).await).await;
    services.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_grace_time_reads_and_connections_end_and_live_uplinks_go_on() {
    let services = Services::start(0).await;
    let mut connection = services.owner.connection(&services.network.mqtt()).await;
    assert_eq!((services.read(&services.owner.token).await, services.uplink().await), (200, 200));
    assert_eq!(services.uplink_outcome().await["fields"], json!(r#"{"n":7}"#));

    services.account.freeze();
    soon(503, async || services.read(&services.owner.token).await).await;
    assert_eq!((services.uplink().await, services.change().await), (200, 503));
    // It is accepted, but to say what became of it would be reading.
    assert_eq!(services.uplink_outcome().await, Value::Null);
    let text = services.reason(&services.owner.token).await;
    assert!(text.contains("auth.grace_time_s"), "{text}");
    // It ends when the credential is checked again.
    let mut rest = Vec::new();
    tokio::time::timeout(MESSAGE_TIMEOUT, connection.read_to_end(&mut rest)).await.expect("it is closed").unwrap();

    services.account.thaw();
    soon(200, async || services.read(&services.owner.token).await).await;
    services.owner.connection(&services.network.mqtt()).await;
    services.stop().await;
}
