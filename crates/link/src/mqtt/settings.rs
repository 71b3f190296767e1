//! The settings of a connection to an MQTT broker.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A connection to an MQTT broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MqttSettings {
    /// URL of the broker: `mqtt://host:1883`, or `mqtts://host:8883` for TLS.
    pub url: String,
    /// Username, if the broker wants one.
    pub username: Option<String>,
    /// File with the password.
    pub password_file: Option<PathBuf>,
    /// PEM file with the certificate authority of the broker. If unset, the system's.
    pub ca_certificate: Option<PathBuf>,
    /// PEM file with a client certificate.
    pub certificate: Option<PathBuf>,
    /// PEM file with the private key of the client certificate.
    pub key: Option<PathBuf>,
}
