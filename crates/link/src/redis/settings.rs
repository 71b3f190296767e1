//! The settings of a Redis stream.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Remote;

types::settings! {
    /// ChirpStack's Redis, with the stream of all devices' events.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct StreamSettings {
        /// URL of the server, or of a node of a cluster: `redis://host:6379`, or `rediss://host:6379` for TLS. If it is
        /// empty, events come over MQTT.
        pub url: String,
        /// User name, if the server wants one.
        pub username: Option<String>,
        /// File with the password.
        pub password_file: Option<PathBuf>,
        /// PEM file with the certificate authority of the server. If unset, the system's.
        pub ca_certificate: Option<PathBuf>,
        /// PEM file with a client certificate.
        pub certificate: Option<PathBuf>,
        /// PEM file with the private key of the client certificate.
        pub key: Option<PathBuf>,
        /// The `key_prefix` of ChirpStack's `[redis]`.
        pub key_prefix: String,
        /// The consumer group. Bridges with the same one share the events.
        pub group: String = "airlock".to_owned(),
        /// After how long what another consumer has not acknowledged is taken over, in milliseconds. At least 1000.
        pub claim_after_ms: u64 = 60_000,
    }
}

impl StreamSettings {
    /// The server and the login.
    pub(super) fn remote(&self) -> Remote {
        let Self { url, username, password_file, ca_certificate, certificate, key, .. } = self.clone();
        Remote { url, username, password_file, ca_certificate, certificate, key }
    }
}
