//! From `airlock serve` to a decoded uplink in the live view, as the README words it, typed by a machine.

use std::{fs, io::Write, path::Path, process::Stdio, time::Instant};

use testing::figures::Figures;

use crate::{
    airlock,
    page::{browser, log_in, until},
    server_process::{PASSWORD, ServerProcess},
};

const DECODER: &str = "function Decoder(bytes, port) {
  return { temperature: (bytes[0] << 8 | bytes[1]) / 100, port: port };
}
";
/// The live view has the temperature of the README.
const IS_SHOWN: &str = "return document.querySelector('#live tbody')?.textContent.includes('23.96') ?? false;";
const IS_OPEN: &str = "return document.getElementById('state')?.textContent.includes('appear here') ?? false;";

pub(crate) async fn measure(figures: &mut Figures) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("decoder.js"), DECODER).unwrap();
    let began = Instant::now();
    let server = ServerProcess::start("").await;
    let browser = browser(&format!("http://{}", server.account)).await;
    let type_command = |words: &[&str], input: &str| type_command(&server, dir.path(), words, input);
    type_command(&["user", "register", "alice", "alice@example.com", "--password-stdin"], PASSWORD);
    type_command(&["user", "login", "alice", "--password-stdin"], PASSWORD);
    type_command(&["applications", "add", "my-first-app", "My first application"], "");
    type_command(&["applications", "pf", "set", "decoder", "decoder.js"], "");
    type_command(&["devices", "register", "my-first-device"], "");
    log_in(&browser, "alice").await;
    browser.open("/console/applications/my-first-app/live").await;
    until(&browser, "the live view", IS_OPEN, vec![]).await;
    type_command(&["devices", "simulate", "my-first-device", "095C"], "");
    until(&browser, "an uplink in the live view", IS_SHOWN, vec![]).await;
    let seconds = began.elapsed().as_secs_f64();
    figures.add(
        "`airlock serve` to a decoded live uplink, without the time of reading and typing",
        format!("{seconds:.1} s"),
        "≤ 60 s with it",
    );
}

/// Runs a command of the README, which must succeed.
fn type_command(server: &ServerProcess, dir: &Path, words: &[&str], input: &str) {
    let settings = fs::read_to_string(server.dir().join("airlock.toml")).unwrap();
    let settings: toml::Table = settings.parse().unwrap();
    let discovery = settings["listen"]["discovery"].as_str().unwrap();
    let mut command = airlock();
    // As in the README, server and commands have one directory, and thereby one certificate.
    command.current_dir(dir).env("HOME", dir).arg("--data").arg(server.dir());
    command.args(["--auth-server", &format!("http://{}", server.account), "--discovery-address", discovery]);
    let piped = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // A command that does not read its input closes it.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{words:?} fails: {}", String::from_utf8_lossy(&output.stderr));
}
