//! The settings of an output to Redis Streams.

use std::path::PathBuf;

use link::Remote;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::AppId;

types::settings! {
    /// Streams of a Redis server or cluster that get the messages of applications.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct RedisSettings {
        /// Tells it from other Redis outputs. What waits belongs to this name.
        pub name: String = "main".to_owned(),
        /// URL of the server, or of a node of a cluster: `redis://host:6379`, or `rediss://host:6379` for TLS.
        pub url: String = "redis://127.0.0.1:6379".to_owned(),
        /// Addresses of the sentinels that watch over the server, such as `redis://host:26379`. The host of `url` is
        /// then the name by which they know the primary, as in `redis://mymaster`.
        pub sentinels: Vec<String>,
        /// User name, if the server wants one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub username: Option<String>,
        /// File with the password.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub password_file: Option<PathBuf>,
        /// PEM file with the certificate authority of the server. If unset, the system's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ca_certificate: Option<PathBuf>,
        /// PEM file with a client certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf>,
        /// PEM file with the private key of the client certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf>,
        /// The key of the stream, in which `{app_id}` stands for the application.
        pub stream: String = "airlock:{app_id}".to_owned(),
        /// About how many entries a stream keeps; Redis deletes older ones.
        pub length_max: u64 = 100_000,
        /// Whose messages are sent; those of all applications if it is empty.
        #[schemars(with = "Vec<String>")]
        pub applications: Vec<AppId>,
        /// Which events are sent, such as `up` and `down/sent`; all if it is empty.
        pub events: Vec<String>,
    }
}

impl RedisSettings {
    /// The server and the login.
    pub(super) fn remote(&self) -> Remote {
        let Self { url, username, password_file, ca_certificate, certificate, key, .. } = self.clone();
        Remote { url, username, password_file, ca_certificate, certificate, key }
    }
}
