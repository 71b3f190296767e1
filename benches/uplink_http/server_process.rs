//! An `airlock serve` process on free ports, with everything in a temporary directory.

#![allow(dead_code, reason = "each bench uses a part of it")]
#![allow(clippy::panic, reason = "a bench ends when its server does not do what it should")]

use std::{
    env, fs,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command},
    time::Duration,
};

use client::account::{AccountClient, ClientCredentials};
use serde_json::{Value, json};
use tempfile::TempDir;
use testing::process::cpu_time;
use types::{AppId, Credential, Scope, Secret, Username};

/// The first device of each application.
pub(crate) const DEVICE: &str = "dev";

/// The file with what the server prints, in its data directory.
const PRINTED: &str = "printed";
/// Maximum number of looks at it.
const LOOKS_MAX: usize = 1200;

/// The password of each user.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// Rights of the application's key.
const RIGHTS: [&str; 4] = ["devices", "messages:up:r", "messages:up:w", "messages:down:w"];

pub(crate) struct ServerProcess {
    pub(crate) binary: String,
    pub(crate) handler: SocketAddr,
    pub(crate) handler_grpc: SocketAddr,
    pub(crate) mqtt: SocketAddr,
    pub(crate) account: SocketAddr,
    process: Child,
    dir: TempDir,
}

pub(crate) struct Application {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) token: Secret,
}

impl Application {
    /// The HTTP request that simulates an uplink of a device.
    pub(crate) fn uplink(&self, dev_id: &str) -> Vec<u8> {
        self.uplink_as(dev_id, &format!("Bearer {}", self.token.expose()))
    }

    /// The same with the application's key.
    pub(crate) fn uplink_with_key(&self, dev_id: &str) -> Vec<u8> {
        self.uplink_as(dev_id, &format!("Key {}", self.key))
    }

    fn uplink_as(&self, dev_id: &str, authorization: &str) -> Vec<u8> {
        let body = json!({ "port": 1, "payload": "AZqooA==" }).to_string();
        let request = format!(
            "POST /applications/{}/devices/{dev_id}/simulate HTTP/1.1\r\nhost: bench\r\nauthorization: {authorization}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.id,
            body.len(),
        );
        request.into_bytes()
    }
}

impl ServerProcess {
    /// Starts the server with these settings, in TOML, where `{dir}` stands for its data directory; returns when its
    /// handler accepts connections.
    pub(crate) async fn start(more_settings: &str) -> Self {
        Self::start_in(&env::temp_dir(), &[], more_settings).await
    }

    /// The same with its data below a directory, and run by a command such as `prlimit --nofile=4096`.
    pub(crate) async fn start_in(parent: &Path, command: &[&str], more_settings: &str) -> Self {
        let binary = env::var_os("AIRLOCK_BINARY")
            .map_or_else(|| env!("CARGO_BIN_EXE_airlock").to_owned(), |path| path.into_string().unwrap());
        let dir = tempfile::tempdir_in(parent).unwrap();
        let [account, discovery, discovery_http, handler_grpc, handler, mqtt, telemetry] = free_addresses();
        let settings = format!(
            "data_dir = '{}'\n\
             listen = {{ account = '{account}', discovery = '{discovery}', discovery_http = '{discovery_http}', \
             handler = '{handler_grpc}', handler_http = '{handler}' }}\n\
             broker.listen = '{mqtt}'\n\
             telemetry.listen = '{telemetry}'\n\
             telemetry.level = 'error'\n\
             handler.calls.client = {{ burst = 1000000000, per_hour = 1000000000 }}\n\
             handler.calls.application = {{ burst = 1000000000, per_hour = 1000000000 }}\n\
             sandbox.cache_dir = '{}/cache'\n\
             {more_settings}",
            dir.path().display(),
            env!("CARGO_TARGET_TMPDIR"),
        );
        let file = dir.path().join("airlock.toml");
        fs::write(&file, settings.replace("{dir}", dir.path().to_str().unwrap())).unwrap();
        let words = [command, &[binary.as_str()]].concat();
        let mut command = Command::new(words[0]);
        let printed = fs::File::create(dir.path().join(PRINTED)).unwrap();
        command.args(&words[1..]).arg("--config").arg(file).arg("serve").stdout(printed);
        // The server would read these as settings.
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"AIRLOCK_")) {
            command.env_remove(name);
        }
        let process = command.spawn().unwrap();
        let mut this = Self { binary, handler, handler_grpc, mqtt, account, process, dir };
        while tokio::net::TcpStream::connect(handler).await.is_err() {
            assert!(this.process.try_wait().unwrap().is_none(), "the server ended");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        this
    }

    /// The address that creates the first account, as soon as it is printed.
    pub(crate) async fn first_account_link(&self) -> String {
        for _ in 0..LOOKS_MAX {
            let printed = fs::read_to_string(self.dir.path().join(PRINTED)).unwrap();
            let link = printed.split_whitespace().find(|word| word.contains("/register?first="));
            // It is printed to its end when more follows.
            if let Some(link) = link.filter(|_| printed.contains("Next")) {
                return link.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server does not print how to create the first account");
    }

    /// Registers a user, the user's application with these functions, and the device [`DEVICE`].
    pub(crate) async fn create_application(&self, id: &str, functions: Value) -> Application {
        let owner = self.register(id).await;
        self.add_application(&owner, id, functions).await
    }

    /// Registers a user; returns a token.
    pub(crate) async fn register(&self, user: &str) -> Secret {
        let user: Username = user.parse().unwrap();
        let account = AccountClient::new(&format!("http://{}", self.account)).unwrap();
        let password = Secret::new(PASSWORD);
        let email = format!("{user}@example.com");
        let new = json!({ "username": user, "email": email, "password": password.expose() });
        account.register_user(&serde_json::from_value(new).unwrap()).await.unwrap();
        let client = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
        account.password_token(&client, &user, &password, &[]).await.unwrap().access_token
    }

    /// Creates one more application of a user with these functions, and the device [`DEVICE`].
    pub(crate) async fn add_application(&self, owner: &Secret, id: &str, functions: Value) -> Application {
        let id: AppId = id.parse().unwrap();
        let account = AccountClient::new(&format!("http://{}", self.account)).unwrap();
        let new = serde_json::from_value(json!({ "id": id, "name": id })).unwrap();
        account.create_application(&Credential::Token(owner.clone()), &new).await.unwrap();
        let token = account.restrict_token(owner, &[Scope::App(id.clone())]).await.unwrap();
        let new = serde_json::from_value(json!({ "name": "bench", "rights": RIGHTS })).unwrap();
        let key = account.add_access_key(&Credential::Token(token.clone()), &id, &new).await.unwrap().key;
        let key = key.unwrap().expose().to_owned();

        let path = format!("/applications/{id}");
        self.send("POST", "/applications", &token, json!({ "app_id": id })).await;
        self.send("PUT", &path, &token, functions).await;
        let application = Application { id: id.to_string(), key, token };
        self.add_device(&application, DEVICE).await;
        application
    }

    pub(crate) async fn add_device(&self, application: &Application, dev_id: &str) {
        let lorawan = json!({ "app_id": application.id, "dev_id": dev_id });
        let path = format!("/applications/{}/devices/{dev_id}", application.id);
        self.send("PUT", &path, &application.token, json!({ "lorawan_device": lorawan })).await;
    }

    /// Sends JSON to the handler, which must accept it.
    pub(crate) async fn send(&self, method: &str, path: &str, token: &Secret, body: Value) {
        let request = reqwest::Client::new().request(method.parse().unwrap(), format!("http://{}{path}", self.handler));
        let response = request.bearer_auth(token.expose()).json(&body).send().await.unwrap();
        assert!(response.status().is_success(), "{method} {path}: {}", response.text().await.unwrap());
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its data directory.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// An address that is free now.
    pub(crate) fn free_address() -> SocketAddr {
        let [address] = free_addresses();
        address
    }

    /// The functions of the demo.
    pub(crate) fn demo_functions() -> Value {
        json!({
            "payload_format": "custom",
            "decoder": include_str!("../../cli/commands/demo/decoder.js"),
            "converter": include_str!("../../cli/commands/demo/converter.js"),
            "validator": include_str!("../../cli/commands/demo/validator.js"),
        })
    }

    /// The CPU time that the process has used so far, user and system.
    pub(crate) fn cpu_time(&self) -> Duration {
        cpu_time(self.process.id())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).unwrap();
    }
}

fn free_addresses<const COUNT: usize>() -> [SocketAddr; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}
