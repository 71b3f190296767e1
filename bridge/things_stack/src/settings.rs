//! The settings of the bridge to The Things Stack.

use std::path::PathBuf;

use link::Remote;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Secret;

types::settings! {
    /// The bridge to The Things Stack 3.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct ThingsStackSettings {
        /// The applications whose messages are decoded, such as `[{ id = "app1@tenant1", key_file = "app1.key" }]`.
        pub applications: Vec<ThingsStackApplication>,
        /// An API key for all applications that have no `key_file`.
        #[schemars(with = "String", extend("writeOnly" = true))]
        pub key: Secret,
        /// A file with that API key.
        pub key_file: Option<PathBuf>,
        /// The Things Stack's API, from which the payload formatters come.
        pub api: ApiSettings,
        /// The Things Stack's MQTT server. If its `url` is empty, the host of the API, with TLS if that has it. Users
        /// and passwords are the applications and their API keys.
        pub mqtt: Remote,
        /// Receives messages as a webhook, in place of MQTT, if its `listen` is set.
        pub webhook: WebhookSettings,
        /// The broker on which decoded messages are published, and on which downlinks are taken.
        pub to: Remote,
        /// Prefix of the topics on the broker of `to`. If unset, nothing.
        pub to_prefix: Option<String>,
        /// Interval of fetching changes from the API, in milliseconds.
        pub refresh_interval_ms: u64 = 30_000,
        /// Number of devices that are fetched again in each interval, those that were fetched longest ago first.
        pub refresh_devices_max: usize = 500,
        /// Maximum number of messages in progress.
        pub in_flight_max: u16 = 8192,
        /// Time that a message waits for a sandbox, in milliseconds. After that it is published as it came.
        pub sandbox_wait_ms_max: u64 = 2_000,
        /// Time that a message waits for the API, in milliseconds. After that it is published as it came.
        pub api_wait_ms_max: u64 = 10_000,
        /// Time that a message waits for a broker that refuses it, in milliseconds. After that it is dropped and
        /// counted.
        pub refused_wait_ms_max: u64 = 300_000,
        /// Time within which duplicates of a message are recognized, in milliseconds.
        pub duplicate_window_ms: u64 = 3_600_000,
        /// Number of messages that are remembered to recognize duplicates.
        pub duplicate_messages_max: usize = 200_000,
        /// Maximum number of models of the device repository in memory.
        pub models_max: usize = 10_000,
        /// Maximum number of devices in memory.
        pub devices_max: usize = 500_000,
    }
}

/// An application whose messages the bridge receives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThingsStackApplication {
    /// Its id and tenant, such as `app1@tenant1`; in the open source edition its id alone.
    pub id: String,
    /// File with an API key of the application. If unset, the key of all applications.
    pub key_file: Option<PathBuf>,
}

/// The Things Stack's API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApiSettings {
    /// URL of the cluster, such as `https://eu1.cloud.thethings.network`.
    pub url: String,
    /// PEM file with the certificate authority of an `https` URL. If unset, the system's.
    pub ca_certificate: Option<PathBuf>,
}

/// The receiver of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSettings {
    /// Address to listen at, such as `127.0.0.1:8090`. If empty, messages come over MQTT. Entries of `[[bridge]]` may
    /// have the same address, if their keys differ.
    pub listen: String,
    /// File with the secret that requests bring in `Authorization: Bearer`. If unset, the API key of their application,
    /// which they may also bring in `X-Downlink-Apikey`.
    pub key_file: Option<PathBuf>,
}
