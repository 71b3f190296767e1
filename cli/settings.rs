//! All settings: those that the crates define, and those of this program.

mod check;
mod follow;
mod networks;
pub(crate) mod profile;

use std::{
    env,
    path::{self, Path, PathBuf},
};

use anyhow::Context;
use bridge::Remote;
use clap::Args;
use etcetera::{BaseStrategy, choose_base_strategy};
use handler::output::OutputSettings;
use mqtt::BrokerSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use server::{auth::AuthSettings, ledger::BudgetSettings, serve, settings::Layers, telemetry};
use types::{AccessKey, AppId, ComponentId};

pub use self::networks::{ApplicationSettings, BridgeSettings, NetworkSettings};
use self::profile::ProfileName;
use crate::{output::Output, terminal::say};

/// Options that every command takes; each is also a setting.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Settings file [default: airlock.toml in the current directory, then in the user's configuration directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Settings file NAME.toml in the directory `airlock` of the user's configuration directory
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "config")]
    pub(crate) profile: Option<ProfileName>,
    /// Data directory
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// URL of the account service
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) auth_server: Option<String>,
    /// Address of the discovery service
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub(crate) discovery_address: Option<String>,
    /// Id of the handler
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) handler_id: Option<ComponentId>,
    /// Address of the MQTT broker [default: the one that the handler announces]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub(crate) mqtt_address: Option<String>,
    /// MQTT username, which is an application id [default: the command's application]
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) mqtt_username: Option<AppId>,
    /// MQTT password, which is an access key [default: a key of the application]
    #[arg(long, global = true, value_name = "KEY")]
    pub(crate) mqtt_password: Option<AccessKey>,
    /// Id of the router of gateways that are registered
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) router_id: Option<ComponentId>,
    /// Allow unencrypted connections to a discovery service or handler without TLS
    #[arg(long, global = true)]
    pub(crate) allow_insecure: bool,
}

impl GlobalOptions {
    /// The options that say where settings and data are, for a command in any directory; empty or with a space before.
    pub(crate) fn where_settings_are(&self) -> String {
        let absolute = |path: &PathBuf| path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
        let options = [
            ("--config", self.config.as_ref().map(absolute)),
            ("--profile", self.profile.as_ref().map(ToString::to_string)),
            ("--data", self.data.as_ref().map(absolute)),
        ];
        let given = options.into_iter().filter_map(|(option, value)| Some((option, value?)));
        given.map(|(option, value)| format!(" {option} {}", quoted(&value))).collect()
    }
}

/// A word as a shell reads it. One that no shell can read stays as it is.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Into::into)
}

types::settings! {
    /// All settings, of the services and of the commands.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Settings {
        /// Data directory. If empty, `airlock` in the user's data directory.
        pub data_dir: PathBuf,
        /// Host name or address at which others reach this machine. It is announced, and named in the certificate.
        /// Clients of v2 send no credentials to an MQTT broker whose address starts with `localhost`.
        pub announce_host: String = "127.0.0.1".to_owned(),
        /// Addresses that the services listen on. Port 0 picks a free port.
        pub listen: ListenSettings,
        /// Connections of commands to the services.
        pub client: ClientSettings,
        /// Where the services store data.
        pub store: StoreSettings,
        /// TLS of the gRPC listeners.
        pub tls: TlsSettings,
        /// Verification of credentials.
        pub auth: AuthSettings,
        /// Limits of every listener.
        pub serve: serve::ServeSettings,
        /// Budgets of what can run out, in all and by owner.
        pub budgets: BudgetSettings,
        /// Logs, metrics and health.
        pub telemetry: telemetry::TelemetrySettings,
        /// The account service.
        pub account: account::Settings,
        /// The discovery service.
        pub discovery: discovery::Settings,
        /// The handler.
        pub handler: handler::Settings,
        /// The history of messages.
        pub history: history::Settings,
        /// The embedded MQTT broker.
        pub broker: BrokerSettings,
        /// A broker that others run, in which several handlers publish the same.
        pub external_broker: ExternalBrokerSettings,
        /// Published messages, and their destinations.
        pub output: OutputSettings,
        /// The bridges to existing networks.
        pub bridge: BridgeSettings,
        /// The codec service, `POST /codecs/{name}`.
        pub codecs: codecs::Settings,
        /// The console: applications, devices, messages and functions in a browser.
        pub console: console::Settings,
        /// The sandbox that runs payload functions.
        pub sandbox: runtime::Settings,
    }
}

types::settings! {
    /// Addresses that the services listen on. Each accepts both gRPC and HTTP.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct ListenSettings {
        /// The account service, plain HTTP.
        pub account: String = "127.0.0.1:8000".to_owned(),
        /// The discovery service for gRPC clients, with TLS unless `tls.mode` is `off`.
        pub discovery: String = "127.0.0.1:1900".to_owned(),
        /// The discovery service without TLS.
        pub discovery_http: String = "127.0.0.1:8080".to_owned(),
        /// The handler for gRPC clients, with TLS unless `tls.mode` is `off`.
        pub handler: String = "127.0.0.1:1904".to_owned(),
        /// The handler without TLS.
        pub handler_http: String = "127.0.0.1:8084".to_owned(),
    }
}

types::settings! {
    /// Connections of commands to the services.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct ClientSettings {
        /// URL of the account service. By default, that of `listen.account`.
        pub auth_server: String = "http://127.0.0.1:8000".to_owned(),
        /// Address of the discovery service. By default, that of `listen.discovery`.
        pub discovery_address: String = "127.0.0.1:1900".to_owned(),
        /// Id of the handler. By default, `handler.id`.
        #[schemars(with = "String")]
        pub handler_id: ComponentId = handler::Settings::default().id,
        /// Address of the MQTT broker. If unset, the one that the handler announces.
        pub mqtt_address: Option<String>,
        /// MQTT username, which is an application id. If unset, the command's application.
        #[schemars(with = "Option<String>")]
        pub mqtt_username: Option<AppId>,
        /// MQTT password, which is an access key. If unset, a key of the application.
        #[schemars(with = "Option<String>", extend("writeOnly" = true))]
        pub mqtt_password: Option<AccessKey>,
        /// Id of the router of gateways that are registered. If unset, that of `account.routers` if it names one
        /// router, or else none.
        #[schemars(with = "Option<String>")]
        pub router_id: Option<ComponentId>,
        /// Allow unencrypted connections to a discovery service without TLS, and to a handler that is announced without
        /// a certificate. By default, if `tls.mode` is `off` and the address is that of `listen.discovery`.
        pub allow_insecure: bool,
    }
}

/// Where the services store data.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Redis, which several instances can share. If unset, the embedded store in the data directory.
    pub redis: Option<store::RedisSettings>,
    /// The file that shows whether the store went back to an earlier state; by default `store.mark` in the data
    /// directory.
    ///
    /// Put it where it is not restored together with the store.
    pub mark_file: Option<PathBuf>,
}

types::settings! {
    /// A broker that others run: Mosquitto, RabbitMQ, EMQX, VerneMQ. Messages go there too, and downlinks come from
    /// there.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct ExternalBrokerSettings {
        /// The connection. None while the URL is empty.
        pub mqtt: Remote,
        /// Address at which applications reach the broker, which the handler announces. If unset, that of the
        /// connection.
        pub announced_address: Option<String>,
        /// True if this handler receives downlinks from the broker, a share of them or in turns with other handlers.
        pub receives_downlinks: bool = true,
        /// Address at which the broker asks what clients may do; empty for none. Only brokers should reach it.
        pub access_listen: String,
        /// File with a secret of 16 letters and digits or more, with which the paths of those questions begin. Needed
        /// where others than this machine reach the address.
        pub access_secret_file: Option<PathBuf>,
        /// Number of client ids that an application may use in a week, at most 1000. Each is kept in the store.
        pub clients_per_application_max: usize = 200,
        /// True if client ids must begin with the id of their application and a colon. Without it, an application can
        /// keep others from an id by using it first.
        pub client_ids_name_application: bool,
        /// Time that the broker may take to confirm a message, in milliseconds. An uplink that it has not confirmed by
        /// then is refused as unavailable, so that its sender repeats it.
        pub confirm_timeout_ms: u64 = 5_000,
    }
}

/// TLS of the gRPC listeners.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSettings {
    /// `self-signed` generates a certificate on the first start, `files` uses your own, `off` disables TLS.
    pub mode: TlsMode,
    /// PEM file with the certificate chain, starting with the server's own certificate.
    pub certificate: Option<PathBuf>,
    /// PEM file with the private key. If unset, the certificate's file.
    pub key: Option<PathBuf>,
}

/// Where the certificate comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Generated on the first start.
    #[default]
    SelfSigned,
    /// Read from files.
    Files,
    /// No TLS.
    Off,
}

impl Settings {
    /// Loads the settings: flags override the environment, the environment the settings file, and that the defaults.
    pub(crate) fn load(global: &GlobalOptions) -> anyhow::Result<Self> {
        let dirs = choose_base_strategy().context("cannot find your home directory: set HOME")?;
        let file = match &global.profile {
            Some(profile) => Some(profile.file()?),
            None => global.config.clone().or_else(|| {
                let candidates = [PathBuf::from("airlock.toml"), dirs.config_dir().join("airlock/airlock.toml")];
                candidates.into_iter().find(|path| path.exists())
            }),
        };
        let mut layers = Layers::new();
        if let Some(path) = &file {
            layers = layers.file_with_list(path, "bridge", "into");
        }
        let layers = flags(layers.environment(env::vars()), global);
        let mut settings: Self = layers.load()?;
        if settings.data_dir.as_os_str().is_empty() {
            settings.data_dir = dirs.data_dir().join("airlock");
        }
        if settings.sandbox.cache_dir.is_none() {
            settings.sandbox.cache_dir = Some(dirs.cache_dir().join("airlock"));
        }
        settings.check(&layers)?;
        settings.follow_services(|key| layers.is_named(key));
        Ok(settings)
    }

    /// Changes the settings to store data in `dir` and to listen on free local ports. The module cache stays in place.
    pub fn temporary(mut self, dir: &Path) -> Self {
        let free = || "127.0.0.1:0".to_owned();
        dir.clone_into(&mut self.data_dir);
        self.listen = ListenSettings {
            account: free(),
            discovery: free(),
            discovery_http: free(),
            handler: free(),
            handler_http: free(),
        };
        self.broker.listen = free();
        self.external_broker = ExternalBrokerSettings::default();
        self.telemetry.listen = Some(free());
        self.codecs.listen = free();
        self.console.listen = free();
        self.store = StoreSettings::default();
        self.tls = TlsSettings::default();
        self.handler.token_file = None;
        self.handler.discovery_certificate_file = None;
        self.client.mqtt_address = None;
        self.client.mqtt_username = None;
        self.client.mqtt_password = None;
        self
    }
}

fn flags(layers: Layers, global: &GlobalOptions) -> Layers {
    let layers = match &global.data {
        Some(directory) => layers.flag("--data", "data_dir", directory),
        None => layers,
    };
    let flags = [
        ("--auth-server", "client.auth_server", json!(global.auth_server)),
        ("--discovery-address", "client.discovery_address", json!(global.discovery_address)),
        ("--handler-id", "client.handler_id", json!(global.handler_id)),
        ("--mqtt-address", "client.mqtt_address", json!(global.mqtt_address)),
        ("--mqtt-username", "client.mqtt_username", json!(global.mqtt_username)),
        ("--mqtt-password", "client.mqtt_password", json!(global.mqtt_password)),
        ("--router-id", "client.router_id", json!(global.router_id)),
        ("--allow-insecure", "client.allow_insecure", json!(global.allow_insecure.then_some(true))),
    ];
    let given = flags.into_iter().filter(|(.., value)| !value.is_null());
    given.fold(layers, |layers, (flag, key, value)| layers.flag(flag, key, value))
}

/// Prints every setting with its description and value; for programs, those that have a value. Secrets are left out.
pub(crate) fn print(settings: &Settings, output: &Output) -> anyhow::Result<()> {
    let text = server::settings::print(settings)?;
    if output.is_table() { say(text) } else { output.object(toml::from_str(&text)?) }
}
