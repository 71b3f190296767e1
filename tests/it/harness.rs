//! Starts services in this process, commands, and third-party programs.

mod rest;
pub(crate) mod server_process;

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, OnceLock},
    time::Duration,
};

use airlock::{
    serve::{Environment, Stack},
    settings::Settings,
};
use api::{
    discovery::Announcement,
    handler::{Application, SimulatedUplinkMessage, application_manager_client::ApplicationManagerClient},
    rest::{
        account::{NewAccessKey, NewApplication, NewUser},
        handler::{Device, LorawanDevice},
    },
};
use client::{
    Trust,
    account::{AccountClient, ClientCredentials},
    discovery::DiscoveryClient,
    handler::HandlerClient,
};
use server::{audit::AuditLog, system::SystemClock, telemetry::Metrics};
use store::RedisSettings;
use tempfile::TempDir;
use testing::{ManualClock, MqttClient, RedisProcess};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, transport::Channel};
use types::{AccessKey, AppId, ApplicationRight, Clock, Credential, Scope, Secret, ServiceName};

/// Maximum wait for anything. Only a failing test waits that long: other tests keep the machine busy.
pub(crate) const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const PASSWORD: &str = "correct horse battery";

/// All services in this process, on free ports.
pub(crate) struct Network {
    pub(crate) stack: Stack,
    pub(crate) dir: TempDir,
}

impl Network {
    pub(crate) async fn start() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::at(Arc::new(SystemClock), change).await
    }

    /// With a clock that the test moves, which shows the real time until then.
    pub(crate) async fn with_clock(change: impl FnOnce(&mut Settings)) -> (Self, Arc<ManualClock>) {
        let clock = ManualClock::at(SystemClock.now());
        (Self::at(clock.clone(), change).await, clock)
    }

    pub(crate) async fn at(clock: Arc<dyn Clock>, change: impl FnOnce(&mut Settings)) -> Self {
        server::system::install_crypto();
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Self::settings(dir.path());
        change(&mut settings);
        let stack = Stack::start(settings, None, environment_at(clock)).await.unwrap();
        Self { stack, dir }
    }

    /// Settings for services that keep their data in `dir`, on free ports.
    pub(crate) fn settings(dir: &Path) -> Settings {
        let mut settings = Settings::default().temporary(dir);
        settings.sandbox.cache_dir = Some(cache());
        settings.sandbox.workers = 1;
        settings
    }

    pub(crate) async fn on(redis: &RedisProcess, change: impl FnOnce(&mut Settings)) -> Self {
        Self::on_store(RedisSettings { urls: vec![redis.url()], ..RedisSettings::default() }, change).await
    }

    pub(crate) async fn on_store(redis: RedisSettings, change: impl FnOnce(&mut Settings)) -> Self {
        Self::with(|settings| {
            settings.store.redis = Some(redis);
            change(settings);
        })
        .await
    }

    pub(crate) fn mqtt(&self) -> String {
        self.stack.mqtt_address().unwrap().to_string()
    }

    pub(crate) fn handler_http(&self) -> String {
        format!("http://{}", self.stack.handler_http_address().unwrap())
    }

    /// The generated client of the handler, for requests that ours does not send.
    pub(crate) async fn manager(&self) -> ApplicationManagerClient<Channel> {
        let channel = Channel::from_shared(self.handler_http()).unwrap().connect().await.unwrap();
        ApplicationManagerClient::new(channel)
    }

    pub(crate) async fn announcement(&self) -> Announcement {
        let client = &self.stack.settings().client;
        announcement(self.dir.path(), &client.discovery_address).await
    }

    /// A client of discovery that has not read anything yet.
    pub(crate) fn discovery(&self) -> DiscoveryClient {
        discovery(self.dir.path(), &self.stack.settings().client.discovery_address)
    }

    /// Registers a user with an application.
    pub(crate) async fn owner(&self, name: &str) -> Owner {
        Owner::register(name, &self.stack.settings().client.auth_server, &self.announcement().await).await
    }

    pub(crate) fn type_command(&self, arguments: &[&str], input: &str) -> Output {
        run(&mut self.command(arguments), input)
    }

    /// Runs a command on a terminal, which also shows the input. Each answer is typed after its question is shown.
    pub(crate) fn type_at_terminal(&self, arguments: &[&str], answers: &[(&str, &str)]) -> Output {
        let words = arguments.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>();
        self.run_at_terminal(&format!("$AIRLOCK {}", words.join(" ")), answers)
    }

    /// The same for a line of a shell, in which `$AIRLOCK` stands for the command line of this network.
    pub(crate) fn run_at_terminal(&self, line: &str, answers: &[(&str, &str)]) -> Output {
        let mut terminal = at_terminal(&self.command(&[]), line, self.dir.path());
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = terminal.spawn().expect("script starts");
        let (mut input, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut said = Vec::new();
        for (question, answer) in answers {
            let (mut rest, mut byte) = (Vec::new(), [0]);
            while !rest.ends_with(question.as_bytes()) && shown.read(&mut byte).unwrap() > 0 {
                rest.push(byte[0]);
            }
            said.extend(rest);
            _ = writeln!(input, "{answer}");
        }
        shown.read_to_end(&mut said).unwrap();
        Output { stdout: said, ..child.wait_with_output().unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let client = &self.stack.settings().client;
        let mut command = airlock(self.dir.path());
        command.args(["--auth-server", &client.auth_server, "--discovery-address", &client.discovery_address]);
        command.args(arguments);
        command
    }
}

/// A user with an application.
pub(crate) struct Owner {
    pub(crate) app_id: AppId,
    pub(crate) token: Credential,
    pub(crate) key: AccessKey,
    pub(crate) handler: HandlerClient,
}

impl Owner {
    /// Registers a user with an application at running services.
    pub(crate) async fn register(name: &str, auth_server: &str, handler: &Announcement) -> Self {
        let account = AccountClient::new(auth_server).unwrap();
        let (username, email) = (name.parse().unwrap(), format!("{name}@example.com"));
        account.register_user(&NewUser { username, email, password: Secret::new(PASSWORD) }).await.unwrap();
        let token = session(&account, name).await;
        let app_id: AppId = format!("{name}-app").parse().unwrap();
        let new = NewApplication { id: app_id.clone(), name: "Test".to_owned(), euis: vec![], access_keys: vec![] };
        account.create_application(&Credential::Token(token.clone()), &new).await.unwrap();
        let token = account.restrict_token(&token, &[Scope::App(app_id.clone())]).await.unwrap();
        let token = Credential::Token(token);
        let keys = account.access_keys(&token, &app_id).await.unwrap();
        let key = keys.into_iter().find(|key| key.rights.contains(&ApplicationRight::MessagesUpRead)).unwrap();
        let handler = HandlerClient::connect(handler, token.clone()).unwrap();
        handler.register_application(&app_id).await.unwrap();
        Self { app_id, token, key: key.key.unwrap(), handler }
    }

    /// A token for everything that the user may do.
    pub(crate) async fn session(&self, account: &AccountClient) -> Secret {
        let name = self.app_id.as_str().trim_end_matches("-app");
        session(account, name).await
    }

    /// A new access key with one right.
    pub(crate) async fn key_with(&self, network: &Network, right: &str) -> AccessKey {
        let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
        let new = NewAccessKey { name: right.replace(':', " "), rights: vec![right.parse().unwrap()] };
        account.add_access_key(&self.token, &self.app_id, &new).await.unwrap().key.unwrap()
    }

    /// Sets decoder, converter and validator; empty for none.
    pub(crate) async fn set_functions(&self, [decoder, converter, validator]: [&str; 3]) -> client::Result<()> {
        let application = Application {
            app_id: self.app_id.to_string(),
            decoder: decoder.to_owned(),
            converter: converter.to_owned(),
            validator: validator.to_owned(),
            ..Application::default()
        };
        self.handler.set_application(application).await
    }

    /// A request with the owner's credential, for [`Network::manager`].
    pub(crate) fn sign<T>(&self, message: T) -> Request<T> {
        let Credential::Token(token) = &self.token else { panic!("owners have tokens") };
        let mut request = Request::new(message);
        request.metadata_mut().insert("token", token.expose().parse().unwrap());
        request
    }

    pub(crate) async fn add_device(&self, dev_id: &str) {
        self.handler.set_device(device(&self.app_id, dev_id).into()).await.unwrap();
    }

    pub(crate) async fn listen(&self, network: &Network) -> MqttClient {
        self.listen_at(&network.mqtt()).await
    }

    pub(crate) async fn listen_at(&self, address: &str) -> MqttClient {
        let mut listener = MqttClient::connect_with(address, self.app_id.as_str(), self.key.expose()).await;
        for messages in ["up", "down", "events/#"] {
            listener.subscribe(&format!("{}/devices/+/{messages}", self.app_id)).await;
        }
        listener
    }

    /// An MQTT connection that does not come back by itself when it is closed.
    pub(crate) async fn connection(&self, address: &str) -> TcpStream {
        let mut packet = b"\x00\x04MQTT\x04\xc2\x00\x3c".to_vec();
        for text in ["", self.app_id.as_str(), self.key.expose()] {
            packet.extend((text.len() as u16).to_be_bytes());
            packet.extend(text.as_bytes());
        }
        let length = u8::try_from(packet.len()).ok().filter(|length| *length < 128).expect("one byte holds the length");
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(&[&[0x10, length][..], &packet].concat()).await.unwrap();
        let mut connack = [0; 4];
        connection.read_exact(&mut connack).await.unwrap();
        assert_eq!(connack, [0x20, 2, 0, 0], "connected");
        connection
    }

    pub(crate) async fn simulate(&self, dev_id: &str, payload: &[u8], port: u32) -> client::Result<()> {
        let (app_id, dev_id) = (self.app_id.to_string(), dev_id.to_owned());
        let uplink = SimulatedUplinkMessage { app_id, dev_id, payload: payload.to_vec(), port };
        self.handler.simulate_uplink(uplink).await.map(drop)
    }
}

/// Logs a user in.
async fn session(account: &AccountClient, name: &str) -> Secret {
    let client = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
    let (name, password) = (name.parse().unwrap(), Secret::new(PASSWORD));
    account.password_token(&client, &name, &password, &[]).await.unwrap().access_token
}

/// The announcement of the handler that keeps its data in `dir`.
pub(crate) async fn announcement(dir: &Path, discovery_address: &str) -> Announcement {
    discovery(dir, discovery_address).get(ServiceName::Handler, &"handler".parse().unwrap()).await.unwrap()
}

fn discovery(dir: &Path, address: &str) -> DiscoveryClient {
    // There is no certificate without TLS.
    let certificate = std::fs::read_to_string(dir.join("ca.cert")).unwrap_or_default();
    DiscoveryClient::connect(address, &Trust::announced(&certificate)).unwrap()
}

pub(crate) fn device(app_id: &AppId, dev_id: &str) -> Device {
    let lorawan = LorawanDevice { app_id: app_id.to_string(), dev_id: dev_id.to_owned(), ..Default::default() };
    Device { app_id: app_id.to_string(), dev_id: dev_id.to_owned(), lorawan_device: Some(lorawan), ..Device::default() }
}

/// The next message as JSON, and its topic below the application. Skips events about devices that were set, which may
/// still arrive from before the subscription.
pub(crate) async fn next(listener: &mut MqttClient) -> (String, serde_json::Value) {
    loop {
        let (topic, message) = next_of_all(listener).await;
        if message.get("update_at").is_none() {
            return (topic, message);
        }
    }
}

/// The next message of any kind.
pub(crate) async fn next_of_all(listener: &mut MqttClient) -> (String, serde_json::Value) {
    let message = tokio::time::timeout(MESSAGE_TIMEOUT, listener.next()).await.expect("a message arrives");
    let (_, topic) = message.topic.split_once("/devices/").unwrap();
    (topic.to_owned(), serde_json::from_slice(&message.payload).unwrap())
}

/// Removes the time of an event, and the id of its downlink if it has one; whether it had a time.
pub(crate) fn remove_time(event: &mut serde_json::Value) -> bool {
    _ = event.as_object_mut().and_then(|event| event.remove("downlink_id"));
    let time = event.as_object_mut().and_then(|event| event.remove("time"));
    time.and_then(|time| time.as_str()?.parse::<types::Timestamp>().ok()).is_some()
}

/// `line` of a shell in a terminal, in which `$AIRLOCK` stands for `command`.
pub(crate) fn at_terminal(command: &Command, line: &str, dir: &Path) -> Command {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let airlock = words.map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ");
    let mut terminal = Command::new("script");
    terminal.args(["-qec", line, "/dev/null"]).env("AIRLOCK", airlock).current_dir(dir);
    inherit_environment(&mut terminal, command);
    terminal
}

/// Gives a program the environment that a command has.
pub(crate) fn inherit_environment(program: &mut Command, command: &Command) {
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
}

/// The command line with its files in `dir`, and without the environment of the test.
pub(crate) fn airlock(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlock"));
    command.current_dir(dir).env("HOME", dir).env("XDG_CACHE_HOME", cache());
    remove_settings(&mut command);
    command.arg("--data").arg(dir);
    command
}

/// Lets a program run `airlock` in `dir` by its name.
pub(crate) fn runs_airlock(program: &mut Command, dir: &Path) {
    let ours = Path::new(env!("CARGO_BIN_EXE_airlock")).parent().map(Path::to_owned);
    let others = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&others))).unwrap();
    program.current_dir(dir).env("PATH", path).env("HOME", dir).env("XDG_CACHE_HOME", cache());
    remove_settings(program);
}

/// Takes from a program what the environment of the test says to Airlock.
pub(crate) fn remove_settings(program: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AIRLOCK_")) {
        program.env_remove(name);
    }
}

pub(crate) fn run(command: &mut Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // A command that does not read its input closes it.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The output of a successful command.
pub(crate) fn printed(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// The error output of a failed command.
pub(crate) fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A cache of loaded functions that all tests share.
pub(crate) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// The machine's clock, and no audit file.
pub(crate) fn environment() -> Environment {
    environment_at(Arc::new(SystemClock))
}

pub(crate) fn environment_at(clock: Arc<dyn Clock>) -> Environment {
    // A process has only one recorder of metrics.
    static METRICS: OnceLock<Metrics> = OnceLock::new();
    let metrics = METRICS.get_or_init(|| Metrics::install(CancellationToken::new()).unwrap()).clone();
    Environment { metrics, audit: AuditLog::without_file(clock.clone()), clock }
}
