//! RabbitMQ nodes that run as long as their test.

mod node;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use self::node::{Home, Node, PROGRAM};
use crate::Certificates;

/// Number of ports to try; another process may take the chosen ones first.
const TRIES_MAX: usize = 3;
/// The largest message that a node takes over AMQP.
pub const RABBITMQ_MESSAGE_BYTES_MAX: usize = 100_000;
/// Subscriptions of MQTT sessions are on both nodes of a cluster, as its documentation advises.
const MIRRORED: [&str; 4] =
    ["mqtt", "^mqtt-subscription-", r#"{"ha-mode":"all","ha-sync-mode":"automatic"}"#, "--apply-to=queues"];

/// A node that keeps durable queues on disk; it ends when this is dropped.
pub struct RabbitMq {
    node: Node,
}

impl RabbitMq {
    /// Starts a node that speaks AMQP, also with TLS; `None` when the program is missing and the test is skipped. That
    /// takes up to 20 s.
    pub fn start_amqp(certificates: &Certificates) -> Option<Self> {
        let file = |name: &str| certificates.path(name).display().to_string();
        let (authority, certificate, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
        start(|home| {
            Node::start(home, "[].", |ports| {
                format!(
                    "listeners.tcp.1 = 127.0.0.1:{}\nlisteners.ssl.1 = 127.0.0.1:{}\n\
                     ssl_options.cacertfile = {authority}\nssl_options.certfile = {certificate}\n\
                     ssl_options.keyfile = {key}\nmax_message_size = {RABBITMQ_MESSAGE_BYTES_MAX}\n",
                    ports.plain, ports.tls
                )
            })
            .map(|node| Self { node })
        })
    }

    /// Starts a node that speaks MQTT, knows the user `guest`, and asks the HTTP service at `access_url` about all
    /// others; `None` when the test is skipped.
    pub fn start_mqtt(access_url: &str) -> Option<Self> {
        start(|home| {
            Node::start(home, "[rabbitmq_mqtt,rabbitmq_auth_backend_http].", |ports| {
                format!(
                    "listeners.tcp = none\nmqtt.listeners.tcp.1 = 127.0.0.1:{}\nmqtt.allow_anonymous = false\n\
                     auth_backends.1 = internal\nauth_backends.2 = http\nauth_http.http_method = post\n\
                     auth_http.user_path = {access_url}/user\nauth_http.vhost_path = {access_url}/vhost\n\
                     auth_http.resource_path = {access_url}/resource\nauth_http.topic_path = {access_url}/topic\n",
                    ports.plain
                )
            })
            .map(|node| Self { node })
        })
    }

    /// Starts a cluster of two nodes that speak MQTT, and let everybody in; `None` when the test is skipped.
    pub fn start_mqtt_pair() -> Option<[Self; 2]> {
        start(|home| {
            let mut members = Vec::new();
            let mut start = || {
                let node = Node::start(home, "[rabbitmq_mqtt].", |ports| {
                    let mut lines = format!("listeners.tcp = none\nmqtt.listeners.tcp.1 = 127.0.0.1:{}\n", ports.plain);
                    lines.push_str("cluster_formation.peer_discovery_backend = classic_config\n");
                    members.push(ports.node_name());
                    for (number, member) in (1..).zip(&members) {
                        lines.push_str(&format!("cluster_formation.classic_config.nodes.{number} = {member}\n"));
                    }
                    lines
                })?;
                Some(Self { node })
            };
            let pair = [start()?, start()?];
            pair[0].control(&[&["set_policy"], &MIRRORED[..]].concat());
            Some(pair)
        })
    }

    /// The address for AMQP, as settings take it.
    pub fn url(&self) -> String {
        format!("amqp://{}", self.address())
    }

    /// The address for AMQP with TLS.
    pub fn tls_url(&self) -> String {
        format!("amqps://localhost:{}", self.node.ports.tls)
    }

    /// The address for MQTT, as settings take it.
    pub fn mqtt_url(&self) -> String {
        format!("mqtt://{}", self.address())
    }

    /// Returns the address at which it listens, without TLS.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.node.ports.plain).into()
    }

    /// Runs `rabbitmqctl` with these arguments.
    pub fn control(&self, arguments: &[&str]) {
        self.node.control(arguments);
    }

    /// A file with a password.
    pub fn password_file(&self, password: &str) -> PathBuf {
        let path = self.node.dir.path().join("password");
        fs::write(&path, password).unwrap();
        path
    }

    /// Kills the node; confirmed messages are in its directory.
    pub fn kill(&mut self) {
        self.node.kill();
    }

    /// Starts the killed node again.
    pub fn start_again(&mut self) {
        self.node.start_again();
    }

    /// Suspends the node: it neither answers nor closes its connections.
    pub fn freeze(&self) {
        self.node.signal("-STOP");
    }

    /// Resumes a frozen node.
    pub fn thaw(&self) {
        self.node.signal("-CONT");
    }
}

/// Tries until everything that `try_start` starts is ready.
fn start<T>(try_start: impl Fn(&Arc<Home>) -> Option<T>) -> Option<T> {
    if !crate::programs_may_run() || !Path::new(PROGRAM).exists() {
        crate::skip("rabbitmq-server is missing", "install it, on Debian by `apt-get install rabbitmq-server`");
        return None;
    }
    Some((0..TRIES_MAX).find_map(|_| try_start(&Home::create())).expect("RabbitMQ did not start"))
}
