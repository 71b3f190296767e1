//! The mock cluster of librdkafka, which runs as long as its test.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{Certificates, Python};

const PACKAGE: &str = "confluent-kafka==2.16.1";
const SCRIPTS: [(&str, &str); 2] =
    [("peer.py", include_str!("kafka/peer.py")), ("login.py", include_str!("kafka/login.py"))];

/// A cluster of one broker, and a consumer of all its topics; both end when this is dropped.
pub struct KafkaMock {
    child: Child,
    commands: ChildStdin,
    done: mpsc::Receiver<()>,
    records: UnboundedReceiver<Value>,
    address: String,
    _dir: TempDir,
}

impl KafkaMock {
    /// Starts a cluster with packages in `dir`; `None` when they cannot be installed and the test is skipped.
    pub fn start(dir: &Path) -> Option<Self> {
        Self::start_with(dir, &[])
    }

    /// Like [`Self::start`], with TLS, for the user `airlock` with the password `hush`.
    pub fn start_tls(dir: &Path, certificates: &Certificates) -> Option<Self> {
        let file = |name| certificates.path(name).display().to_string();
        Self::start_with(dir, &["--tls".to_owned(), file("ca.pem"), file("server.pem"), file("server.key")])
    }

    fn start_with(packages: &Path, arguments: &[String]) -> Option<Self> {
        let python = Python::install(packages, &[PACKAGE])?;
        let dir = tempfile::tempdir().unwrap();
        SCRIPTS.iter().for_each(|(name, text)| fs::write(dir.path().join(name), text).unwrap());
        let mut command: Command = python.command(&dir.path().join("peer.py"));
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (commands, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut output = BufReader::new(output);
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let first: Value = serde_json::from_str(&first).expect("the mock cluster did not start");
        let address = first["address"].as_str().unwrap().to_owned();
        let (done_sender, done) = mpsc::channel();
        let (records_sender, records) = unbounded_channel();
        thread::spawn(move || hand_over(output, &done_sender, &records_sender));
        Some(Self { child, commands, done, records, address, _dir: dir })
    }

    /// Returns the address at which it listens, as settings take it.
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// Creates a topic.
    pub fn create_topic(&mut self, name: &str, partitions: u32) {
        self.command(&json!({"do": "topic", "name": name, "partitions": partitions}));
    }

    /// Closes all connections, and accepts none.
    pub fn stop(&mut self) {
        self.command(&json!({"do": "down"}));
    }

    /// Accepts connections again. Confirmed messages are still there.
    pub fn start_again(&mut self) {
        self.command(&json!({"do": "up"}));
    }

    /// Refuses the next batch of records with this error code of the protocol.
    pub fn refuse(&mut self, error: i16) {
        self.command(&json!({"do": "refuse", "error": error}));
    }

    /// Suspends the cluster: it neither answers nor closes its connections.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Resumes a frozen cluster.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// The next record: `topic`, `partition`, `key`, `value`, `headers` and `time`.
    pub async fn next(&mut self) -> Value {
        self.records.recv().await.expect("the mock cluster runs")
    }

    fn command(&mut self, command: &Value) {
        writeln!(self.commands, "{command}").unwrap();
        self.done.recv().unwrap();
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for KafkaMock {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn hand_over(output: BufReader<ChildStdout>, done: &mpsc::Sender<()>, records: &UnboundedSender<Value>) {
    for line in output.lines().map_while(Result::ok) {
        let said: Value = serde_json::from_str(&line).unwrap();
        // The test may have ended.
        _ = if said.get("done").is_some() { done.send(()).is_ok() } else { records.send(said).is_ok() };
    }
}
