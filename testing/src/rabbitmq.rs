//! A RabbitMQ node with its MQTT plugin that runs as long as its test.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use tempfile::TempDir;

/// The wrapper in the path wants to be another user.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// How many ports are tried; another process may take the chosen ones first.
const TRIES_MAX: usize = 3;

/// A node; it ends when this is dropped.
pub struct RabbitMqtt {
    node: Child,
    names: Child,
    port: u16,
    _dir: TempDir,
}

impl RabbitMqtt {
    /// Starts a node that knows the user `guest`, and asks the HTTP service at `access_url` about all others; none when
    /// the program is missing and the test is skipped. That takes up to 20 s.
    pub fn start(access_url: &str) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            crate::skip("rabbitmq-server is missing", "install it, on Debian by `apt-get install rabbitmq-server`");
            return None;
        }
        Some((0..TRIES_MAX).find_map(|_| Self::try_start(access_url)).expect("RabbitMQ did not start"))
    }

    /// Where it listens for MQTT.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    fn try_start(access_url: &str) -> Option<Self> {
        let [port, distribution, names_port] = free_ports();
        let dir = tempfile::tempdir().unwrap();
        let lines = format!(
            "listeners.tcp = none\nmqtt.listeners.tcp.1 = 127.0.0.1:{port}\nmqtt.allow_anonymous = false\n\
             auth_backends.1 = internal\nauth_backends.2 = http\nauth_http.http_method = post\n\
             auth_http.user_path = {access_url}/user\nauth_http.vhost_path = {access_url}/vhost\n\
             auth_http.resource_path = {access_url}/resource\nauth_http.topic_path = {access_url}/topic\n"
        );
        fs::write(dir.path().join("rabbitmq.conf"), lines).unwrap();
        fs::write(dir.path().join("enabled_plugins"), "[rabbitmq_mqtt,rabbitmq_auth_backend_http].").unwrap();
        // Otherwise the node starts a process for all nodes of the machine, which stays.
        let mut command = Command::new("epmd");
        command.args(["-port", &names_port.to_string(), "-address", "127.0.0.1"]).process_group(0);
        let mut names = command.spawn().unwrap();
        if let Some(node) = serve([port, distribution, names_port], dir.path()) {
            return Some(Self { node, names, port, _dir: dir });
        }
        end(&mut names);
        None
    }
}

fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All are held at the same time, so that they differ.
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// None when the node ended before it was ready, as it does when a port is taken.
fn serve([port, distribution, names]: [u16; 3], dir: &Path) -> Option<Child> {
    let mut command = Command::new(PROGRAM);
    command
        .current_dir(dir)
        .env("HOME", dir)
        .env("ERL_EPMD_PORT", names.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("ERL_CRASH_DUMP", "/dev/null")
        .env("RABBITMQ_NODENAME", format!("airlock-mqtt-{port}@localhost"))
        .env("RABBITMQ_DIST_PORT", distribution.to_string())
        .env("RABBITMQ_MNESIA_BASE", dir.join("mnesia"))
        .env("RABBITMQ_LOG_BASE", dir.join("log"))
        .env("RABBITMQ_CONFIG_FILE", dir.join("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", dir.join("enabled_plugins"))
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
    let mut node = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok);
    if lines.by_ref().any(|line| line.contains("completed with")) {
        // It would end if it could not write.
        thread::spawn(move || lines.for_each(drop));
        return Some(node);
    }
    end(&mut node);
    None
}

/// Kills a process with its children.
fn end(child: &mut Child) {
    _ = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).stderr(Stdio::null()).status();
    _ = child.wait();
}

impl Drop for RabbitMqtt {
    fn drop(&mut self) {
        end(&mut self.node);
        end(&mut self.names);
    }
}
