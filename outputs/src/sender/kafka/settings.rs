//! The settings of an output to Kafka.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::AppId;

types::settings! {
    /// Topics of a Kafka cluster that get the messages of applications. Only in builds with the feature `kafka`.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct KafkaSettings {
        /// Tells it from other Kafka outputs. What waits belongs to this name.
        pub name: String = "main".to_owned(),
        /// Addresses of some brokers, as `host:9092`. The others are found through them.
        pub brokers: Vec<String> = vec!["127.0.0.1:9092".to_owned()],
        /// Connects with TLS.
        pub tls: bool,
        /// User name, if the cluster wants one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub username: Option<String>,
        /// File with the password.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub password_file: Option<PathBuf>,
        /// SASL mechanism that proves the password to the cluster.
        pub mechanism: KafkaMechanism,
        /// PEM file with the certificate authority of the brokers. If unset, the system's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ca_certificate: Option<PathBuf>,
        /// PEM file with a client certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf>,
        /// PEM file with the private key of the client certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf>,
        /// The topic, in which `{app_id}` stands for the application. It must exist.
        pub topic: String = "airlock".to_owned(),
        /// Compression of records that leave together.
        pub compression: KafkaCompression,
        /// Whose messages are sent; those of all applications if it is empty.
        #[schemars(with = "Vec<String>")]
        pub applications: Vec<AppId>,
        /// Which events are sent, such as `up` and `down/sent`; all if it is empty.
        pub events: Vec<String>,
    }
}

/// A mechanism of SASL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KafkaMechanism {
    /// The password itself: use it only with TLS.
    Plain,
    /// SCRAM with SHA-256, which does not show the password.
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    /// SCRAM with SHA-512, which does not show the password.
    #[default]
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
}

/// Compression of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KafkaCompression {
    /// Not at all.
    #[default]
    None,
    /// Gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}
