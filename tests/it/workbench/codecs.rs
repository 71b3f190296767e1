//! The codec service, as a command and beside the handler.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{airlock, complaint, run, server_process::ServerProcess};

const CODEC: &str = "function decodeUplink(input) { return { data: { n: input.bytes.length } }; }";

/// Ends the process with the test.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("/codecs")).expect("it says where it is");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: line.split(' ').next_back().unwrap().to_owned() }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn functions_serve(dir: &Path) -> Command {
    let mut command = airlock(dir);
    command.env("AIRLOCK_TELEMETRY__LISTEN", "127.0.0.1:0").args(["functions", "serve"]);
    command
}

async fn count(url: &str, hex: &str) -> Value {
    let request = reqwest::Client::new().post(format!("{url}/count")).body(json!({"hex": hex}).to_string());
    request.send().await.unwrap().json::<Value>().await.unwrap()["fields"]["n"].take()
}

// Conformance: functions serve
#[tokio::test]
async fn a_directory_of_codecs_is_served() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("codecs")).unwrap();
    fs::write(dir.path().join("codecs/count.js"), CODEC).unwrap();
    let service =
        Service::start(functions_serve(dir.path()).arg(dir.path().join("codecs")).args(["--listen", "127.0.0.1:0"]));
    assert_eq!(count(&service.url, "010203").await, 3);
}

// Conformance: functions serve
#[test]
fn a_service_without_codecs_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let told = complaint(&run(&mut functions_serve(dir.path()), ""));
    assert!(told.contains("no directory of codecs is set: set `codecs.dir`"), "{told}");
    let told = complaint(&run(functions_serve(dir.path()).arg("/nonexistent"), ""));
    assert!(told.contains("cannot read the directory of codecs /nonexistent: check that it exists"), "{told}");
}

#[tokio::test]
async fn the_handler_serves_codecs_when_it_is_told_to() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("count.js"), CODEC).unwrap();
    let mut command = crate::harness::server_process::serve(dir.path());
    command.env("AIRLOCK_CODECS__DIR", dir.path()).env("AIRLOCK_CODECS__LISTEN", "127.0.0.1:0").stderr(Stdio::null());
    let server = ServerProcess::spawn(&mut command);
    assert_eq!(count(server.place("codecs"), "0102").await, 2);
    server.stop();
}
