//! `airlock replay`: stored uplinks through a codec, from files, PostgreSQL, Redis and The Things Stack.

mod codecs;
mod files;
mod own;
mod page;
mod parquet;
mod postgres;
mod redis;
mod things_stack;

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{airlock, run};

/// Fails for short payloads; the network's old codec multiplied by ten, and did not know about port 3.
const CODEC: &str = "function decodeUplink(input) {
  if (input.bytes.length < 2) throw new Error('too short: ' + input.bytes.length);
  return { data: { celsius: (input.bytes[0] << 8 | input.bytes[1]) / 100, port: input.fPort } };
}";

fn with_codec() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("codec.js"), CODEC).unwrap();
    dir
}

fn command(dir: &Path, from: &str, arguments: &[&str]) -> Command {
    let mut command = airlock(dir);
    command.args(["replay", "--from", from, "--codec", "codec.js"]).args(arguments);
    command
}

/// The report as JSON, and the exit code.
fn report(command: &mut Command, input: &str) -> (Value, Option<i32>) {
    let output = run(command.arg("--json"), input);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (report, output.status.code())
}

/// Returns the numbers of uplinks that are equal, changed, newly failing, newly decoded and still failing.
fn counts(report: &Value) -> [u64; 5] {
    ["equal", "changed", "newly_failing", "newly_decoded", "still_failing"].map(|name| report[name].as_u64().unwrap())
}
