//! The process of a node, and the shared parts of nodes that form a cluster.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
};

use tempfile::TempDir;

use crate::program::port::Port;

/// The wrapper in the path wants to be another user.
pub(super) const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const CONTROL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";

/// The secret of nodes that form a cluster, and the process by which they find each other.
pub(super) struct Home {
    dir: TempDir,
    names: Child,
    port: Port,
}

/// Ports of a node.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    pub(super) plain: u16,
    pub(super) tls: u16,
    distribution: u16,
}

pub(super) struct Node {
    process: Child,
    pub(super) ports: Ports,
    _held: [Port; 3],
    pub(super) dir: TempDir,
    home: Arc<Home>,
}

impl Home {
    pub(super) fn create() -> Arc<Self> {
        let (port, dir) = (Port::free(), tempfile::tempdir().unwrap());
        // Otherwise the first node starts a process for all nodes of the machine, which stays.
        let mut command = Command::new("epmd");
        command.args(["-port", &port.number().to_string(), "-address", "127.0.0.1"]).process_group(0);
        Arc::new(Self { dir, names: command.spawn().unwrap(), port })
    }
}

impl Ports {
    pub(super) fn node_name(self) -> String {
        format!("airlock-{}@localhost", self.plain)
    }
}

impl Node {
    /// Starts a node whose configuration has these lines; `None` when it ended before it was ready, as it does when a
    /// port is taken.
    pub(super) fn start(home: &Arc<Home>, plugins: &str, lines: impl FnOnce(Ports) -> String) -> Option<Self> {
        let held = [(); 3].map(|()| Port::free());
        let [plain, tls, distribution] = held.each_ref().map(Port::number);
        let (ports, dir) = (Ports { plain, tls, distribution }, tempfile::tempdir().unwrap());
        fs::write(dir.path().join("rabbitmq.conf"), lines(ports)).unwrap();
        fs::write(dir.path().join("enabled_plugins"), plugins).unwrap();
        let process = serve(ports, dir.path(), home)?;
        Some(Self { process, ports, _held: held, dir, home: home.clone() })
    }

    pub(super) fn control(&self, arguments: &[&str]) {
        let mut command = Command::new(CONTROL);
        environment(&mut command, self.ports, self.dir.path(), &self.home);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(super) fn kill(&mut self) {
        end(&mut self.process);
    }

    pub(super) fn start_again(&mut self) {
        self.process = serve(self.ports, self.dir.path(), &self.home).expect("RabbitMQ did not start again");
    }

    pub(super) fn signal(&self, name: &str) {
        signal(&self.process, name);
    }
}

fn serve(ports: Ports, dir: &Path, home: &Home) -> Option<Child> {
    let mut command = Command::new(PROGRAM);
    environment(&mut command, ports, dir, home);
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

/// Keeps everything in one directory, and nodes of different tests apart.
fn environment(command: &mut Command, ports: Ports, dir: &Path, home: &Home) {
    command
        .current_dir(dir)
        .env("HOME", home.dir.path())
        .env("ERL_EPMD_PORT", home.port.number().to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("ERL_CRASH_DUMP", "/dev/null")
        .env("RABBITMQ_NODENAME", ports.node_name())
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
fn signal(child: &Child, name: &str) {
    let group = format!("-{}", child.id());
    _ = Command::new("kill").args([name, "--", &group]).stderr(Stdio::null()).status();
}

impl Drop for Node {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        end(&mut self.names);
    }
}
