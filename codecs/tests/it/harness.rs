//! A codec service on a temporary directory.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use codecs::{Codecs, Settings};
use reqwest::{Method, Response};
use runtime::{Engine, Pool};
use serde_json::Value;
use server::{
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, ServeSettings, Server},
    system::{OsRandom, SystemClock},
    telemetry::Health,
};
use tempfile::{NamedTempFile, TempDir};
use tokio_util::sync::CancellationToken;

pub const KEY: &str = "0123456789abcdef";

/// Long enough for anything that happens at all; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Decodes and encodes one byte.
pub const BYTE: &str = "function decodeUplink(input) { return { data: { value: input.bytes[0] } }; }
    function encodeDownlink(input) { return { bytes: [input.data.value], fPort: 3 }; }";

pub struct Service {
    pub dir: TempDir,
    pub health: Health,
    pub key_file: Option<NamedTempFile>,
    url: String,
    stop: CancellationToken,
}

/// All tests share its threads and memory.
pub fn pool() -> Arc<Pool> {
    static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
    let start = || {
        let settings = runtime::Settings { workers: 2, ..runtime::Settings::default() };
        Arc::new(Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap())
    };
    POOL.get_or_init(start).clone()
}

impl Service {
    /// A service with these codecs, which nobody can change over HTTP.
    pub async fn with(codecs: &[(&str, &str)]) -> Self {
        Self::start(codecs, Settings::default()).await
    }

    /// A service with a key.
    pub async fn with_key(codecs: &[(&str, &str)]) -> Self {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("{KEY}\n")).unwrap();
        let settings = Settings { key_file: Some(file.path().to_owned()), ..Settings::default() };
        let mut service = Self::start(codecs, settings).await;
        service.key_file = Some(file);
        service
    }

    pub async fn start(codecs: &[(&str, &str)], settings: Settings) -> Self {
        server::system::install_crypto();
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in codecs {
            fs::write(dir.path().join(format!("{name}.js")), text).unwrap();
        }
        let settings = Settings { dir: Some(dir.path().to_owned()), refresh_interval_ms: 20, ..settings };
        let codecs = Codecs::open(&settings, pool(), Arc::new(SystemClock), Arc::new(OsRandom)).unwrap();
        let (health, stop) = (Health::default(), CancellationToken::new());
        codecs.report_to(&health);
        let server = Server::new(ServeSettings::default(), Arc::new(OsRandom), stop.clone());
        let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
        let router = codecs.router(true);
        let service = HttpService::new("codecs", router, ErrorFormat::Account);
        let serving = server.start(service, listeners);
        let url = format!("http://{}", serving.addresses()[0]);
        let stopped = stop.clone();
        tokio::spawn(async move { codecs.follow(&stopped).await });
        Self { dir, health, key_file: None, url, stop }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Sends a request with the key.
    pub async fn send(&self, method: Method, path: &str, body: impl Into<reqwest::Body>) -> Response {
        let client = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        client.request(method, format!("{}{path}", self.url)).bearer_auth(KEY).body(body).send().await.unwrap()
    }

    /// Sends a request with these headers `Authorization`.
    pub async fn send_with(&self, method: Method, path: &str, credentials: &[String]) -> Response {
        let client = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        let request = client.request(method, format!("{}{path}", self.url));
        let request = credentials.iter().fold(request, |request, value| request.header("authorization", value));
        request.send().await.unwrap()
    }

    /// Sends a request for a host.
    pub async fn send_to(&self, host: &str, path: &str) -> Response {
        let client = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        client.get(format!("{}{path}", self.url)).header("host", host).send().await.unwrap()
    }

    /// Sends JSON to a codec; returns the status and the body.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.send(Method::POST, path, body.to_string()).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// The fields that a codec returns for one byte.
    pub async fn value(&self, name: &str) -> Value {
        self.post(&format!("/codecs/{name}"), &serde_json::json!({"hex": "2a"})).await.1["fields"].clone()
    }

    /// Waits until `is_so` holds.
    pub async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        let wait = async {
            while !is_so().await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what} did not happen"));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Replaces a file in one step, as editors and deployments do.
pub fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}
