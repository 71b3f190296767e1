//! The settings of the bridge to ChirpStack.

use std::path::PathBuf;

use link::{Remote, redis::StreamSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

types::settings! {
    /// The bridge to ChirpStack 4.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct ChirpStackSettings {
        /// The broker on which ChirpStack publishes events, and receives commands.
        pub mqtt: Remote,
        /// ChirpStack's Redis. If its `url` is set, events come from its stream in place of MQTT.
        pub redis: StreamSettings,
        /// ChirpStack's API, from which the codecs come.
        pub grpc: GrpcSettings,
        /// The broker on which decoded events are published, or the Redis to whose stream they are added. If its `url`
        /// is empty, the broker that the events come from.
        pub to: Remote,
        /// About how many events the stream keeps to which decoded events are added.
        pub to_history_max: u64 = 100_000,
        /// Prefix of the topics on the broker of `to`, or the key of the stream. If unset, `airlock/` or `airlock:`
        /// when that is also the broker or the server that the events come from, and nothing otherwise.
        pub to_prefix: Option<String>,
        /// True if several bridges share the messages of a broker, where it speaks MQTT 5. Set it to false for a single
        /// bridge behind a Mosquitto that forgets shared subscriptions when it restarts, as 2.0.11 does.
        pub shared_subscription: bool = true,
        /// True if the script of a device profile runs although the profile's codec is `None`. ChirpStack keeps the
        /// script when its own decoding is switched off, which saves its processor.
        pub kept_scripts: bool = true,
        /// Interval of fetching changes from the API, in milliseconds.
        pub refresh_interval_ms: u64 = 30_000,
        /// Maximum number of messages in progress. The broker keeps further ones.
        pub in_flight_max: u16 = 8192,
        /// Time that a message waits for a sandbox, in milliseconds. After that it is published as it came.
        pub sandbox_wait_ms_max: u64 = 2_000,
        /// Time that a message waits for ChirpStack's API, in milliseconds. After that it is published as it came.
        pub api_wait_ms_max: u64 = 10_000,
        /// Time that a message waits for a broker that refuses it, in milliseconds. After that it is dropped and
        /// counted.
        pub refused_wait_ms_max: u64 = 300_000,
        /// Time within which duplicates of a message are recognized, in milliseconds.
        pub duplicate_window_ms: u64 = 600_000,
        /// Number of messages that are remembered to recognize duplicates.
        pub duplicate_messages_max: usize = 200_000,
        /// Maximum number of device profiles in memory.
        pub profiles_max: usize = 10_000,
        /// Maximum number of devices in memory.
        pub devices_max: usize = 500_000,
    }
}

/// ChirpStack's API.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GrpcSettings {
    /// URL of ChirpStack's API, such as `http://localhost:8080`.
    pub url: String,
    /// File with an API key, global or of a tenant.
    pub token_file: Option<PathBuf>,
    /// PEM file with the certificate authority of an `https` URL. If unset, the system's.
    pub ca_certificate: Option<PathBuf>,
}
