//! Every setting there is: the parts that the crates define, and what only this program needs.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Context;
use etcetera::{BaseStrategy, choose_base_strategy};
use handler::output::mqtt::MqttOutputSettings;
use mqtt::BrokerSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::{serve, settings::Layers, telemetry};
use types::{AccessKey, AppId, ComponentId};

use crate::{args::Global, terminal::say};

/// Everything that can be set, for the services and for the commands that talk to them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Folder where everything is kept; empty for `airlock` in the user's data folder.
    pub data_dir: PathBuf,
    /// Host under which others reach this machine: announced, and named in the certificate. Clients of v2 send no
    /// credentials to an MQTT broker whose address begins with `localhost`.
    pub announce_host: String,
    /// Addresses that the services listen on; port 0 takes a free one.
    pub listen: Listen,
    /// What commands talk to.
    pub client: Client,
    /// Where the services keep things.
    pub store: StoreSettings,
    /// Encryption of the gRPC listeners.
    pub tls: TlsSettings,
    /// Bounds of every listener.
    pub serve: serve::Settings,
    /// Logs, metrics and health.
    pub telemetry: telemetry::Settings,
    /// The account service.
    pub account: account::Settings,
    /// The discovery service.
    pub discovery: discovery::Settings,
    /// The handler.
    pub handler: handler::Settings,
    /// The embedded MQTT broker.
    pub broker: BrokerSettings,
    /// What is published over MQTT.
    pub output: MqttOutputSettings,
    /// The sandboxes that payload functions run in.
    pub sandbox: runtime::Settings,
}

/// Addresses that the services listen on. Each answers gRPC and HTTP alike.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Listen {
    /// The account service, plain HTTP.
    pub account: String,
    /// The discovery service, for gRPC clients; with TLS unless that is off.
    pub discovery: String,
    /// The discovery service, plain.
    pub discovery_http: String,
    /// The handler, for gRPC clients; with TLS unless that is off.
    pub handler: String,
    /// The handler, plain.
    pub handler_http: String,
}

/// What commands talk to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Client {
    /// Address of the account service.
    pub auth_server: String,
    /// Address of the discovery service.
    pub discovery_address: String,
    /// Id of the handler.
    #[schemars(with = "String")]
    pub handler_id: ComponentId,
    /// Address of the MQTT broker; the one that the handler announces unless set.
    pub mqtt_address: Option<String>,
    /// Name for the MQTT broker, which is the id of an application; the one that a command means unless set.
    #[schemars(with = "Option<String>")]
    pub mqtt_username: Option<AppId>,
    /// Password for the MQTT broker, which is an access key; one of the application unless set.
    #[schemars(with = "Option<String>", extend("writeOnly" = true))]
    pub mqtt_password: Option<AccessKey>,
    /// Id of the router; no command talks to one yet.
    #[schemars(with = "Option<String>")]
    pub router_id: Option<ComponentId>,
    /// Talk in plain text to a discovery service without TLS.
    pub allow_insecure: bool,
}

/// Where the services keep things.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Redis, for several instances; the embedded store in the data folder unless set.
    pub redis: Option<store::RedisSettings>,
}

/// Encryption of the gRPC listeners.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSettings {
    /// `self-signed` for a certificate that is made on the first start, `files` for your own, `off` for plain text.
    pub mode: TlsMode,
    /// PEM file with the certificate chain, own certificate first.
    pub certificate: Option<PathBuf>,
    /// PEM file with the key; the file of the certificate unless set.
    pub key: Option<PathBuf>,
}

/// Where the certificate comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Made on the first start, and kept.
    #[default]
    SelfSigned,
    /// From files.
    Files,
    /// Nowhere: plain text.
    Off,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            account: "127.0.0.1:8000".to_owned(),
            discovery: "127.0.0.1:1900".to_owned(),
            discovery_http: "127.0.0.1:8080".to_owned(),
            handler: "127.0.0.1:1904".to_owned(),
            handler_http: "127.0.0.1:8084".to_owned(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::new(),
            announce_host: "127.0.0.1".to_owned(),
            listen: Listen::default(),
            client: Client::default(),
            store: StoreSettings::default(),
            tls: TlsSettings::default(),
            serve: serve::Settings::default(),
            telemetry: telemetry::Settings::default(),
            account: account::Settings::default(),
            discovery: discovery::Settings::default(),
            handler: handler::Settings::default(),
            broker: BrokerSettings::default(),
            output: MqttOutputSettings::default(),
            sandbox: runtime::Settings::default(),
        }
    }
}

impl Default for Client {
    fn default() -> Self {
        Self {
            auth_server: "http://127.0.0.1:8000".to_owned(),
            discovery_address: "127.0.0.1:1900".to_owned(),
            handler_id: handler::Settings::default().id,
            mqtt_address: None,
            mqtt_username: None,
            mqtt_password: None,
            router_id: None,
            allow_insecure: false,
        }
    }
}

impl Settings {
    /// Loads defaults, then the settings file, then the environment, then flags.
    pub fn load(global: &Global) -> anyhow::Result<Self> {
        let folders = choose_base_strategy().context("cannot find your home folder: set HOME")?;
        let candidates = [PathBuf::from("airlock.toml"), folders.config_dir().join("airlock/airlock.toml")];
        let file = global.config.clone().or_else(|| candidates.into_iter().find(|path| path.exists()));
        let mut layers = Layers::new();
        if let Some(path) = &file {
            layers = layers.file(path);
        }
        let mut settings: Self = flags(layers.environment(env::vars()), global).load()?;
        if settings.data_dir.as_os_str().is_empty() {
            settings.data_dir = folders.data_dir().join("airlock");
        }
        if settings.sandbox.cache_dir.is_none() {
            settings.sandbox.cache_dir = Some(folders.cache_dir().join("airlock"));
        }
        Ok(settings)
    }

    /// The same with everything in `folder`, on free ports of this machine; only the compiled sandbox stays where it is.
    pub fn temporary(mut self, folder: &Path) -> Self {
        let free = || "127.0.0.1:0".to_owned();
        folder.clone_into(&mut self.data_dir);
        self.listen = Listen {
            account: free(),
            discovery: free(),
            discovery_http: free(),
            handler: free(),
            handler_http: free(),
        };
        self.broker.listen = free();
        self.telemetry.listen = free();
        self.store = StoreSettings::default();
        self.tls = TlsSettings::default();
        self.handler.token_file = None;
        self.client.mqtt_address = None;
        self.client.mqtt_username = None;
        self.client.mqtt_password = None;
        self
    }
}

fn flags(layers: Layers, global: &Global) -> Layers {
    let mut layers = layers;
    if let Some(folder) = &global.data {
        layers = layers.flag("--data", "data_dir", folder);
    }
    for (flag, key, value) in [
        ("--auth-server", "client.auth_server", &global.auth_server),
        ("--discovery-address", "client.discovery_address", &global.discovery_address),
        ("--mqtt-address", "client.mqtt_address", &global.mqtt_address),
    ] {
        if let Some(value) = value {
            layers = layers.flag(flag, key, value);
        }
    }
    if let Some(id) = &global.handler_id {
        layers = layers.flag("--handler-id", "client.handler_id", id);
    }
    if let Some(id) = &global.router_id {
        layers = layers.flag("--router-id", "client.router_id", id);
    }
    if let Some(app_id) = &global.mqtt_username {
        layers = layers.flag("--mqtt-username", "client.mqtt_username", app_id);
    }
    if let Some(key) = &global.mqtt_password {
        layers = layers.flag("--mqtt-password", "client.mqtt_password", key);
    }
    if global.allow_insecure {
        layers = layers.flag("--allow-insecure", "client.allow_insecure", true);
    }
    layers
}

/// Prints every setting with its meaning and value.
pub fn print(settings: &Settings) -> anyhow::Result<()> {
    say(server::settings::print(settings)?)
}
