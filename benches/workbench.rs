//! Times that an author waits: `functions test` on all codecs, with and without coverage, and `functions watch` from a
//! save to its verdict.
//!
//! The codecs are the records in the directory `AIRLOCK_CORPUS`, or our own. Times are those of whole processes.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use testing::figures::{median, quantile};

const OWN_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/codecs");
const RUNS: usize = 7;
const SAVES: usize = 40;

const SCRIPT: &str = "function decodeUplink(input) {\n  return { data: { level: input.bytes[0] } };\n}\n";
const EXAMPLES: &str = "examples:\n  - { port: 1, bytes: '05', output: { data: { level: 5 } } }\n";

fn main() {
    let corpus = env::var_os("AIRLOCK_CORPUS").map_or_else(|| OWN_DIR.into(), PathBuf::from);
    let dir = tempfile::tempdir().unwrap();
    println!("| figure | median | best | goal |\n|---|--:|--:|--:|");
    let test = |options: &[&str]| test(dir.path(), &corpus, options);
    row("functions test, all codecs", &mut test(&[]), "≤ 1000 ms");
    row("… with coverage", &mut test(&["--coverage"]), "");
    row("functions watch, from save to verdict", &mut watch(dir.path()), "≤ 100 ms");
}

fn row(what: &str, milliseconds: &mut [f64], goal: &str) {
    println!("| {what} | {:.0} ms | {:.0} ms | {goal} |", median(milliseconds), quantile(milliseconds, 0.0));
}

/// The command line with its files in `dir`, and without the variables of this bench, which are no settings.
fn airlock(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlock"));
    env::vars().filter(|(name, _)| name.starts_with("AIRLOCK_")).for_each(|(name, _)| _ = command.env_remove(name));
    command.current_dir(dir).env("HOME", dir).env("XDG_CACHE_HOME", dir).arg("--data").arg(dir).arg("functions");
    command
}

/// Milliseconds of each run but the first, which reads the files from the disk.
fn test(dir: &Path, corpus: &Path, options: &[&str]) -> Vec<f64> {
    let run = |_| {
        let start = Instant::now();
        let mut command = airlock(dir);
        let output = command.args(["test", "--quiet"]).args(options).arg(corpus).output().unwrap();
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        assert!(output.status.success(), "{output:?}");
        milliseconds
    };
    (0..=RUNS).map(run).skip(1).collect()
}

/// Milliseconds from each save to the line with its verdict.
fn watch(dir: &Path) -> Vec<f64> {
    let dir = dir.join("watched");
    fs::create_dir(&dir).unwrap();
    let script = dir.join("level.js");
    fs::write(&script, SCRIPT).unwrap();
    fs::write(dir.join("level.test.yaml"), EXAMPLES).unwrap();
    let mut child = airlock(&dir).args(["watch", "."]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("Watching")));
    let save = |number: usize| {
        let (text, verdict) = match number % 2 {
            0 => (SCRIPT.replace("[0]", "[1]"), "FAILED"),
            _ => (SCRIPT.to_owned(), "PASSED"),
        };
        let start = Instant::now();
        fs::write(&script, text).unwrap();
        assert!(lines.any(|line| line.starts_with(verdict)), "it ended");
        start.elapsed().as_secs_f64() * 1e3
    };
    let times = (0..SAVES).map(save).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    times
}
