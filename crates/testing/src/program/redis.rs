//! A Redis server that runs as long as its test.

mod cluster;
mod sentinels;

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

pub use self::{cluster::RedisCluster, sentinels::RedisSentinels};
use super::port::Port;
use crate::Certificates;

/// Number of ports to try; another process may take the chosen one first.
const TRIES_MAX: usize = 5;
/// Interval at which a server is asked whether it is ready, and the maximum number of times.
const POLL_EVERY: Duration = Duration::from_millis(10);
const POLLS_MAX: usize = 6000;

/// A Redis server; it ends when this is dropped.
pub struct RedisProcess {
    child: Child,
    port: Port,
    dir: TempDir,
    /// Options that it was started with, beside those of every server.
    options: Vec<String>,
}

impl RedisProcess {
    /// Starts a single server; `None` when the program is missing and the test is skipped.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a single server that also listens with TLS, where it wants client certificates; with the URL for TLS.
    pub fn start_tls(certificates: &Certificates) -> Option<(Self, String)> {
        if !is_installed() {
            return None;
        }
        let file = |name: &str| certificates.path(name).display().to_string();
        let (authority, certificate, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
        let try_start = |_| {
            let tls_port = Port::free();
            let listen = ["--tls-port", &tls_port.number().to_string(), "--tls-auth-clients", "yes"];
            let files = ["--tls-ca-cert-file", &authority, "--tls-cert-file", &certificate, "--tls-key-file", &key];
            Some((
                Self::try_start(&[&listen[..], &files].concat())?,
                format!("rediss://127.0.0.1:{}", tls_port.number()),
            ))
        };
        Some((0..TRIES_MAX).find_map(try_start).expect("redis-server did not start"))
    }

    /// Starts a cluster of one node that owns every slot; `None` when the test is skipped.
    pub fn start_cluster() -> Option<Self> {
        let server = Self::start_with(&["--cluster-enabled", "yes"])?;
        server.command("CLUSTER ADDSLOTSRANGE 0 16383");
        wait(|| server.command("CLUSTER INFO").contains("cluster_state:ok"));
        Some(server)
    }

    /// The address, as settings take it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port.number())
    }

    /// Kills the server; acknowledged writes are in its directory.
    pub fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the stopped server again, with the data that it had.
    pub fn start_again(&mut self) {
        self.child =
            serve(self.port.number(), self.dir.path(), &self.options).expect("redis-server did not start again");
    }

    /// Restarts the server, and returns while it is still loading its data, which takes some seconds.
    pub fn restart_loading(&mut self) {
        self.command("EVAL \"for i=1,10000 do redis.call('SET','filler:'..i,'') end\" 0");
        self.command("BGREWRITEAOF");
        wait(|| self.command("INFO persistence").contains("aof_rewrite_in_progress:0"));
        self.stop();
        let slowly = ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"];
        self.child = command(self.port.number(), self.dir.path(), &self.options)
            .args(slowly)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait(|| self.is_loading());
    }

    fn is_loading(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port.number())).is_ok()
            && self.command("GET filler:1").starts_with("-LOADING")
    }

    /// Copies the server's data.
    pub fn backup(&mut self) -> TempDir {
        let backup = tempfile::tempdir().unwrap();
        self.stop();
        copy(self.dir.path(), backup.path());
        self.start_again();
        backup
    }

    /// Replaces the server's data by a backup.
    pub fn restore(&mut self, backup: &TempDir) {
        self.stop();
        self.dir = tempfile::tempdir().unwrap();
        copy(backup.path(), self.dir.path());
        self.start_again();
    }

    /// Suspends the server: it neither answers nor closes its connections.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Resumes a frozen server.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Takes a slot from a cluster, which then refuses everything.
    pub fn break_cluster(&self) {
        self.command("CLUSTER DELSLOTS 0");
        wait(|| self.command("CLUSTER INFO").contains("cluster_state:fail"));
    }

    /// Gives the slot back; the cluster works a little later.
    pub fn mend_cluster(&self) {
        assert!(self.command("CLUSTER ADDSLOTS 0").starts_with("+OK"));
    }

    /// Leaves the server no memory for more data.
    pub fn fill(&self) {
        self.command("CONFIG SET maxmemory-policy noeviction");
        assert!(self.command("CONFIG SET maxmemory 1").starts_with("+OK"));
    }

    /// Gives the server memory again.
    pub fn empty(&self) {
        assert!(self.command("CONFIG SET maxmemory 0").starts_with("+OK"));
    }

    /// Starts a server with options of the command line.
    fn start_with(options: &[&str]) -> Option<Self> {
        if !is_installed() {
            return None;
        }
        Some((0..TRIES_MAX).find_map(|_| Self::try_start(options)).expect("redis-server did not start"))
    }

    fn try_start(options: &[&str]) -> Option<Self> {
        let port = Port::with_bus()?;
        let dir = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let child = serve(port.number(), dir.path(), &options)?;
        Some(Self { child, port, dir, options })
    }

    /// Sends a command whose arguments may be any bytes, and returns what arrives first of the response.
    pub fn call(&self, arguments: &[&[u8]]) -> String {
        self.send(&encode(arguments))
    }

    /// The name and value of the newest entry of a stream, whose entries have one field.
    pub fn newest(&self, key: &[u8]) -> Option<(String, Vec<u8>)> {
        let response = self.request(&encode(&[b"XREVRANGE", key, b"+", b"-", b"COUNT", b"1"]));
        let mut rest = response.as_slice();
        let mut strings = Vec::new();
        while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
            let (line, after) = (&rest[..end], &rest[end + 2..]);
            let length = line.strip_prefix(b"$").map(|length| std::str::from_utf8(length).unwrap().parse().unwrap());
            let length: Option<usize> = length;
            strings.extend(length.map(|length| after[..length].to_vec()));
            rest = &after[length.map_or(0, |length| length + 2)..];
        }
        let (value, name) = (strings.pop()?, strings.pop()?);
        Some((String::from_utf8(name).unwrap(), value))
    }

    /// Sends an inline command and returns what arrives first of the response.
    fn command(&self, command: &str) -> String {
        self.send(format!("{command}\r\n").as_bytes())
    }

    /// Returns true if the server has become a primary. On the way, it closes connections.
    fn is_primary(&self) -> bool {
        let answer = self.try_request(b"ROLE\r\n").unwrap_or_default();
        String::from_utf8_lossy(&answer).contains("master")
    }

    fn send(&self, request: &[u8]) -> String {
        String::from_utf8_lossy(&self.request(request)).into_owned()
    }

    fn request(&self, request: &[u8]) -> Vec<u8> {
        self.try_request(request).unwrap()
    }

    fn try_request(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port.number()))?;
        connection.write_all(request)?;
        let mut response = [0; 4096];
        let length = connection.read(&mut response)?;
        Ok(response[..length].to_vec())
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }
}

fn is_installed() -> bool {
    let mut version = Command::new("redis-server");
    let is_installed = crate::programs_may_run() && version.arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_installed {
        crate::skip("redis-server is missing", "install it, on Debian by `apt-get install redis-server`");
    }
    is_installed
}

/// Asks until it is ready.
#[expect(clippy::disallowed_methods, reason = "a Redis does not announce what it, or its cluster, has come to")]
fn wait(is_ready: impl Fn() -> bool) {
    for _ in 0..POLLS_MAX {
        if is_ready() {
            return;
        }
        thread::sleep(POLL_EVERY);
    }
    panic!("Redis is still not ready");
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap().success());
}

/// A command as the protocol of Redis writes it.
pub fn encode(arguments: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        request.extend_from_slice(argument);
        request.extend_from_slice(b"\r\n");
    }
    request
}

/// `None` when the server ended before it was ready, as it does when its port is taken.
fn serve(port: u16, dir: &Path, options: &[String]) -> Option<Child> {
    wait_for_line(command(port, dir, options), "Ready to accept connections")
}

/// `None` when the program ended before it wrote such a line.
fn wait_for_line(mut command: Command, text: &str) -> Option<Child> {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line.contains(text));
    ready.then_some(child)
}

fn command(port: u16, dir: &Path, options: &[String]) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    // It writes before it answers, and killing it leaves the kernel's buffers intact.
    command.args(["--appendonly", "yes", "--appendfsync", "no"]);
    command.args(options).arg("--dir").arg(dir);
    command
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
