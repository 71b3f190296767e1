//! A RabbitMQ node that runs as long as its test.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use testing::Certificates;

/// The wrapper in the path wants to be another user.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const CONTROL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";
/// How many ports are tried; another process may take the chosen ones first.
const TRIES_MAX: usize = 3;
/// What the broker takes at most.
pub const MESSAGE_BYTES_MAX: usize = 100_000;

/// A node that keeps durable queues on disk; it ends when this is dropped.
pub struct RabbitMq {
    node: Child,
    names: Child,
    ports: Ports,
    dir: TempDir,
}

#[derive(Clone, Copy)]
struct Ports {
    plain: u16,
    tls: u16,
    distribution: u16,
    names: u16,
}

impl RabbitMq {
    /// Starts a node; none when the program is missing and the test is skipped. That takes up to 20 s.
    pub fn start(certificates: &Certificates) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            testing::skip("rabbitmq-server is missing", "install it, on Debian by `apt-get install rabbitmq-server`");
            return None;
        }
        Some((0..TRIES_MAX).find_map(|_| Self::try_start(certificates)).expect("RabbitMQ did not start"))
    }

    /// The address, as settings take it.
    pub fn url(&self) -> String {
        format!("amqp://127.0.0.1:{}", self.ports.plain)
    }

    /// The address with TLS.
    pub fn tls_url(&self) -> String {
        format!("amqps://localhost:{}", self.ports.tls)
    }

    pub fn port(&self) -> u16 {
        self.ports.plain
    }

    /// Runs `rabbitmqctl` with these arguments.
    pub fn control(&self, arguments: &[&str]) {
        let mut command = Command::new(CONTROL);
        environment(&mut command, self.ports, self.dir.path());
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A file with a password.
    pub fn password_file(&self, password: &str) -> PathBuf {
        let path = self.dir.path().join("password");
        fs::write(&path, password).unwrap();
        path
    }

    /// Kills the node; what it confirmed is in its directory.
    pub fn kill(&mut self) {
        end(&mut self.node);
    }

    /// Starts the killed node again.
    pub fn start_again(&mut self) {
        self.node = serve(self.ports, self.dir.path()).unwrap_or_else(|text| panic!("RabbitMQ did not start: {text}"));
    }

    /// Suspends the node: it neither answers nor closes its connections.
    pub fn freeze(&self) {
        signal(&self.node, "-STOP");
    }

    /// Resumes a frozen node.
    pub fn thaw(&self) {
        signal(&self.node, "-CONT");
    }

    fn try_start(certificates: &Certificates) -> Option<Self> {
        let [plain, tls, distribution, names] = free_ports();
        let (ports, dir) = (Ports { plain, tls, distribution, names }, tempfile::tempdir().unwrap());
        let file = |name: &str| certificates.path(name).display().to_string();
        let lines = format!(
            "listeners.tcp.1 = 127.0.0.1:{plain}\nlisteners.ssl.1 = 127.0.0.1:{tls}\n\
             ssl_options.cacertfile = {}\nssl_options.certfile = {}\nssl_options.keyfile = {}\n\
             max_message_size = {MESSAGE_BYTES_MAX}\n",
            file("ca.pem"),
            file("server.pem"),
            file("server.key"),
        );
        fs::write(dir.path().join("rabbitmq.conf"), lines).unwrap();
        fs::write(dir.path().join("enabled_plugins"), "[].").unwrap();
        // Otherwise the node starts a process for all nodes of the machine, which stays.
        let mut command = Command::new("epmd");
        command.args(["-port", &names.to_string(), "-address", "127.0.0.1"]).process_group(0);
        let mut names = command.spawn().unwrap();
        match serve(ports, dir.path()) {
            Ok(node) => Some(Self { node, names, ports, dir }),
            Err(_) => {
                end(&mut names);
                None
            }
        }
    }
}

fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All are held at the same time, so that they differ.
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// What the node wrote if it ended before it was ready, as it does when a port is taken.
fn serve(ports: Ports, dir: &Path) -> Result<Child, String> {
    let mut command = Command::new(PROGRAM);
    environment(&mut command, ports, dir);
    let mut node = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut text = String::new();
    for line in lines.by_ref() {
        text = format!("{text}{line}\n");
        if line.contains("completed with") {
            // It would end if it could not write.
            std::thread::spawn(move || lines.count());
            return Ok(node);
        }
    }
    end(&mut node);
    Err(text)
}

/// Keeps everything in one directory, and nodes apart.
fn environment(command: &mut Command, ports: Ports, dir: &Path) {
    command
        .current_dir(dir)
        .env("HOME", dir)
        .env("ERL_EPMD_PORT", ports.names.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("ERL_CRASH_DUMP", "/dev/null")
        .env("RABBITMQ_NODENAME", format!("airlock-{}@localhost", ports.plain))
        .env("RABBITMQ_DIST_PORT", ports.distribution.to_string())
        .env("RABBITMQ_MNESIA_BASE", dir.join("mnesia"))
        .env("RABBITMQ_LOG_BASE", dir.join("log"))
        .env("RABBITMQ_CONFIG_FILE", dir.join("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", dir.join("enabled_plugins"))
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
}

/// Kills a process with its children.
fn end(child: &mut Child) {
    signal(child, "-9");
    _ = child.wait();
}

/// Sends a signal to a process and its children.
fn signal(child: &Child, signal: &str) {
    let group = format!("-{}", child.id());
    _ = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        end(&mut self.node);
        end(&mut self.names);
    }
}
