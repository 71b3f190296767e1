//! An `airlock bridge chirpstack` process.

use std::{
    env, fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    network::Network,
    usage::{Cpu, Measured},
};

/// Interval at which the metrics are read.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// A run that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct BridgeProcess {
    process: Child,
    telemetry: SocketAddr,
    started: Instant,
    dir: Option<TempDir>,
}

impl BridgeProcess {
    pub(crate) fn start(network: &Network, arguments: &[impl AsRef<str>]) -> Self {
        Self::start_in(network, arguments, tempfile::tempdir().unwrap())
    }

    /// Starts it so that it records nothing.
    pub(crate) fn start_without_history(network: &Network, arguments: &[impl AsRef<str>]) -> Self {
        Self::start_with(network, arguments, tempfile::tempdir().unwrap(), "history.bytes_max = 0\n")
    }

    /// Starts it with this data directory.
    pub(crate) fn start_in(network: &Network, arguments: &[impl AsRef<str>], dir: TempDir) -> Self {
        Self::start_with(network, arguments, dir, "")
    }

    fn start_with(network: &Network, arguments: &[impl AsRef<str>], dir: TempDir, more: &str) -> Self {
        let binary = env::var("AIRLOCK_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_airlock").to_owned());
        let telemetry = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let settings = format!(
            "data_dir = '{}'\ntelemetry = {{ listen = '{telemetry}', level = 'error' }}\n\
             sandbox.cache_dir = '{}/cache'\nbridge.chirpstack.shared_subscription = false\n{more}",
            dir.path().display(),
            env!("CARGO_TARGET_TMPDIR"),
        );
        let file = dir.path().join("airlock.toml");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new(binary);
        command.arg("--config").arg(file).args(["bridge", "chirpstack", "--grpc", &network.api.url()]);
        command.arg("--token-file").arg(network.dir.path().join("token"));
        command.args(arguments.iter().map(AsRef::as_ref)).stdout(Stdio::null());
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"AIRLOCK_")) {
            command.env_remove(name);
        }
        Self { process: command.spawn().unwrap(), telemetry, started: Instant::now(), dir: Some(dir) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until so many uplinks are decoded; returns how many are.
    pub(crate) async fn until(&self, uplinks: usize) -> usize {
        loop {
            let decoded = self.decoded();
            if decoded >= uplinks {
                return decoded;
            }
            self.check_patience(uplinks);
            sleep(POLL_EVERY).await;
        }
    }

    /// Measures from a tenth to nearly the end of the uplinks.
    pub(crate) async fn measure(&self, uplinks: usize) -> Measured {
        self.until(1).await;
        let first_s = self.started.elapsed().as_secs_f64();
        let before = self.until(uplinks / 10).await;
        let (start, cpu) = (Instant::now(), Cpu::of(self.id()));
        let after = self.until(uplinks / 100 * 97).await;
        Measured::new(first_s, after - before, start.elapsed(), Cpu::of(self.id()).since(&cpu))
    }

    /// Waits until so many uplinks are dealt with, whatever became of them.
    pub(crate) async fn until_finished(&self, uplinks: usize) {
        while self.uplinks("") < uplinks {
            self.check_patience(uplinks);
            sleep(POLL_EVERY).await;
        }
    }

    fn check_patience(&self, uplinks: usize) {
        let is_late = self.started.elapsed() > PATIENCE;
        assert!(!is_late, "{} of {uplinks} are decoded: {}", self.decoded(), self.metrics());
    }

    /// Returns the number of uplinks that are decoded.
    pub(crate) fn decoded(&self) -> usize {
        self.uplinks("result=\"decoded\"")
    }

    /// Returns the number of uplinks whose result has this label.
    fn uplinks(&self, label: &str) -> usize {
        let metrics = self.metrics();
        let lines = metrics.lines().filter(|line| line.starts_with("airlock_bridge_uplinks_total{"));
        let values = lines.filter(|line| line.contains(label)).filter_map(|line| line.rsplit(' ').next());
        values.map(|value| value.parse::<f64>().unwrap()).sum::<f64>() as usize
    }

    /// Waits until it receives what is published.
    pub(crate) async fn ready(&self) {
        while !self.get("/readyz").starts_with("HTTP/1.1 200") {
            sleep(POLL_EVERY).await;
        }
    }

    fn metrics(&self) -> String {
        self.get("/metrics")
    }

    fn get(&self, path: &str) -> String {
        let mut response = String::new();
        if let Ok(mut connection) = TcpStream::connect(self.telemetry) {
            let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n");
            connection.write_all(request.as_bytes()).unwrap();
            connection.read_to_string(&mut response).unwrap();
        }
        response
    }

    /// Ends it, and returns its data directory.
    pub(crate) fn end(mut self) -> TempDir {
        self.dir.take().unwrap()
    }

    pub(crate) fn resident_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
    }
}

impl Drop for BridgeProcess {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
