//! The settings of an output to AMQP.

use std::path::PathBuf;

use link::Remote;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::AppId;

types::settings! {
    /// An exchange of an AMQP 0.9.1 broker, such as RabbitMQ, that gets the messages of applications.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct AmqpSettings {
        /// Tells it from other AMQP outputs. What waits belongs to this name.
        pub name: String = "main".to_owned(),
        /// URL of the broker: `amqp://host:5672`, or `amqps://host:5671` for TLS; then the virtual host, as in
        /// `amqp://host/vhost`, unless it is `/`.
        pub url: String = "amqp://127.0.0.1:5672".to_owned(),
        /// User name.
        pub username: String = "guest".to_owned(),
        /// File with the password. If unset, it is `guest`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub password_file: Option<PathBuf>,
        /// PEM file with the certificate authority of the broker. If unset, the system's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ca_certificate: Option<PathBuf>,
        /// PEM file with a client certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf>,
        /// PEM file with the private key of the client certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf>,
        /// The exchange, whose type is topic.
        pub exchange: String = "ttn.handler".to_owned(),
        /// Declares the exchange, as a durable one. Otherwise it must exist.
        pub declare_exchange: bool = true,
        /// Keeps messages waiting that the broker would put into no queue. Otherwise it drops them.
        pub mandatory: bool,
        /// Whose messages are sent; those of all applications if it is empty.
        #[schemars(with = "Vec<String>")]
        pub applications: Vec<AppId>,
        /// Which events are sent, such as `up` and `down/sent`; all if it is empty.
        pub events: Vec<String>,
    }
}

impl AmqpSettings {
    /// The broker and the login.
    pub(super) fn remote(&self) -> Remote {
        let Self { url, username, password_file, ca_certificate, certificate, key, .. } = self.clone();
        Remote { url, username: Some(username), password_file, ca_certificate, certificate, key }
    }
}
