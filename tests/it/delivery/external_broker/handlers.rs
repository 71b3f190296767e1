//! Handlers that share a store and a broker that others run.

use std::{path::Path, process::Stdio, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use tempfile::TempDir;
use testing::{RedisProcess, RedisSentinels};
use tokio::task::block_in_place;

use super::until_ready;
use crate::harness::{
    Owner,
    server_process::{ServerProcess, serve},
};

/// Maximum number of attempts to start a handler.
const STARTS_MAX: usize = 10;
/// Files that handlers share, beside the store.
const SHARED_FILES: [&str; 3] = ["handler.key", "handler.pem", "handler.token"];

/// Settings as the environment has them.
type Environment = Vec<(&'static str, String)>;

/// Account, discovery, and a handler that does not take part.
pub(crate) struct Services {
    pub(crate) process: ServerProcess,
    pub(crate) dir: TempDir,
    environment: Environment,
    /// The nodes of the broker. Clients use the last one.
    brokers: Vec<String>,
}

/// Returns settings for processes with one Redis server.
pub(crate) fn of_redis(redis: &RedisProcess) -> Environment {
    vec![("AIRLOCK_STORE__REDIS__URLS", json!([redis.url()]).to_string())]
}

/// Returns settings for a Redis behind sentinels, of which a replica must have each change.
pub(super) fn of_sentinels(redis: &RedisSentinels) -> Environment {
    vec![
        ("AIRLOCK_STORE__REDIS__URLS", json!([redis.primary_url()]).to_string()),
        ("AIRLOCK_STORE__REDIS__SENTINELS", json!(redis.urls()).to_string()),
        ("AIRLOCK_STORE__REDIS__CONFIRMING_REPLICAS", "1".to_owned()),
    ]
}

impl Services {
    pub(crate) fn start(brokers: Vec<String>, environment: Environment) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = serve(dir.path());
        command.envs(environment.iter().cloned()).stderr(Stdio::null());
        Self { process: ServerProcess::spawn(&mut command), dir, environment, brokers }
    }

    /// Returns the URL at which clients connect.
    pub(crate) fn broker(&self) -> &str {
        self.brokers.last().unwrap()
    }

    /// Starts a handler that keeps its files in `dir`.
    fn start_handler(&self, dir: &Path, number: usize) -> ServerProcess {
        let mut command = serve(dir);
        command.arg("handler").stderr(Stdio::null()).envs(self.environment.iter().cloned());
        command.args(["--auth-server", self.process.place("account")]);
        command.args(["--discovery-address", self.process.place("discovery")]);
        command.env("AIRLOCK_HANDLER__DISCOVERY_CERTIFICATE_FILE", self.dir.path().join("ca.cert"));
        command.env("AIRLOCK_EXTERNAL_BROKER__MQTT__URL", &self.brokers[number % self.brokers.len()]);
        ServerProcess::spawn(&mut command)
    }
}

/// A handler that is killed and started again in the same directory.
pub(crate) struct Handler {
    number: usize,
    dir: TempDir,
    pub(crate) process: ServerProcess,
}

impl Handler {
    pub(crate) async fn start(services: &Services, number: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for file in SHARED_FILES {
            std::fs::copy(services.dir.path().join(file), dir.path().join(file)).unwrap();
        }
        // It blocks until the process says where it listens.
        let process = block_in_place(|| services.start_handler(dir.path(), number));
        until_ready(process.place("metrics")).await;
        Self { number, dir, process }
    }

    pub(super) async fn kill(&mut self, services: &Services) {
        self.process.kill();
        self.start_again(services).await;
    }

    /// After it was killed.
    pub(crate) async fn start_again(&mut self, services: &Services) {
        // It ends if its Redis is failing over, and a supervisor starts it again.
        for _ in 0..STARTS_MAX {
            self.process = block_in_place(|| services.start_handler(self.dir.path(), self.number));
            if self.process.has_started() {
                break;
            }
        }
        until_ready(self.process.place("metrics")).await;
    }
}

/// Sends uplinks to any of the handlers.
pub(crate) struct Sender<'a> {
    client: reqwest::Client,
    owner: &'a Owner,
}

impl<'a> Sender<'a> {
    /// An uplink that takes longer is not accepted.
    pub(crate) fn new(owner: &'a Owner, patience: Duration) -> Self {
        Self { client: reqwest::Client::builder().timeout(patience).build().unwrap(), owner }
    }

    /// Sends an uplink. Returns true if the handler at this address accepts it.
    pub(crate) async fn send(&self, base: &str, dev_id: &str, payload: &[u8]) -> bool {
        let url = format!("{base}/applications/{}/devices/{dev_id}/simulate", self.owner.app_id);
        let body = json!({"payload": STANDARD.encode(payload), "port": 1});
        let request = self.client.post(url).json(&body).header("authorization", self.owner.token.to_header());
        request.send().await.is_ok_and(|response| response.status() == 200)
    }
}
