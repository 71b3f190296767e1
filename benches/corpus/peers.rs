//! The same codecs in other engines: a program for each way measures one codec at a time.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use runtime::Dialect;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::codecs::Codec;
use crate::native::PRELUDE;
use crate::rounds::Timing;

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers");
/// Maximum number of reasons that a report shows for a way.
const REASONS_MAX: usize = 3;

/// The program of a way.
enum Program {
    /// Node.js with these arguments.
    Node(&'static [&'static str]),
    /// The program that a variable names, built from `benches/peers/go`, with an argument.
    Go(&'static str, &'static str),
}

const WAYS: &[(&str, Program)] = &[
    ("jitless", Program::Node(&["--jitless", "warm.js"])),
    ("v8", Program::Node(&["warm.js"])),
    ("node", Program::Node(&["vm.js"])),
    ("goja", Program::Go("AIRLOCK_GOJA", "warm")),
    ("goja-new", Program::Go("AIRLOCK_GOJA", "new")),
    ("otto", Program::Go("AIRLOCK_OTTO", "warm")),
    ("otto-new", Program::Go("AIRLOCK_OTTO", "new")),
];

impl Program {
    /// Starts the program; the error says what is missing.
    fn start(&self) -> Result<Process, String> {
        let (mut command, missing) = match self {
            Self::Node(arguments) => {
                let mut command = Command::new("node");
                command.args(*arguments).current_dir(DIR);
                (command, "it needs Node.js 20.18 or newer".to_owned())
            }
            Self::Go(variable, way) => {
                let missing = format!("{variable} names no program built from benches/peers/go");
                let mut command = Command::new(env::var_os(variable).ok_or_else(|| missing.clone())?);
                command.arg(way);
                (command, missing)
            }
        };
        Process::start(&mut command).ok_or(missing)
    }
}

/// A way to run codecs in another program.
pub(crate) struct Peer {
    pub(crate) column: &'static str,
    program: &'static Program,
    process: Process,
    /// Codecs that do not run, with the reason.
    failures: Vec<String>,
    /// Codecs with other results than ours.
    differences: Vec<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    prelude: &'a str,
    script: &'a str,
    /// An expression in `bytes` and `port`.
    call: &'a str,
    /// Evaluates to a function of `bytes` and `port` that returns JSON.
    driver: String,
    rounds: usize,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    port: u8,
    bytes: &'a [u8],
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reply {
    best_us: f64,
    median_us: f64,
    results: Vec<String>,
    error: String,
}

impl Peer {
    /// Starts the programs of the ways among `columns`, and prints which of them are skipped.
    pub(crate) fn start(columns: &[&str]) -> Vec<Self> {
        let chosen = WAYS.iter().filter(|(column, _)| columns.contains(column));
        chosen.filter_map(|(column, program)| Self::new(column, program)).collect()
    }

    fn new(column: &'static str, program: &'static Program) -> Option<Self> {
        match program.start() {
            Ok(process) => {
                println!("{column}: {}", process.engine);
                Some(Self { column, program, process, failures: Vec::new(), differences: Vec::new() })
            }
            Err(missing) => {
                println!("{column}: skipped, {missing}");
                None
            }
        }
    }

    /// The time per message of `codec`; `None` if it fails, or if its results are not the `expected` ones.
    pub(crate) fn time(&mut self, codec: &Codec, rounds: usize, expected: &[Value]) -> Option<Timing> {
        let reply = self.ask(&request(codec, rounds));
        if !reply.error.is_empty() {
            self.failures.push(format!("{}: {}", codec.id, reply.error));
            return None;
        }
        let results: Vec<Value> = reply.results.iter().filter_map(|json| serde_json::from_str(json).ok()).collect();
        if results != expected {
            self.differences.push(format!("{}: another result", codec.id));
            return None;
        }
        Some(Timing { best: reply.best_us, median: reply.median_us })
    }

    /// The reply to a request. A program that ended is started again, for the next codec.
    fn ask(&mut self, request: &Request<'_>) -> Reply {
        let Some(line) = self.process.ask(&serde_json::to_string(request).unwrap()) else {
            self.process = self.program.start().unwrap();
            return Reply { error: "the program ended".to_owned(), ..Reply::default() };
        };
        serde_json::from_str(&line).unwrap()
    }

    /// Prints a table of what did not run or gave other results, with some reasons.
    pub(crate) fn report(peers: &[Self]) {
        if peers.is_empty() {
            return;
        }
        println!("\n| way | fail | other results | for example |\n|---|--:|--:|---|");
        for Self { column, failures, differences, .. } in peers {
            let reasons = differences.iter().chain(failures).take(REASONS_MAX);
            let reasons: Vec<_> = reasons.map(|reason| reason.replace(['\n', '|'], " ")).collect();
            println!("| {column} | {} | {} | {} |", failures.len(), differences.len(), reasons.join("; "));
        }
    }
}

fn request(codec: &Codec, rounds: usize) -> Request<'_> {
    let call = match codec.dialect {
        Dialect::V2 => "Decoder(bytes, port)",
        Dialect::ChirpStack3 => "Decode(port, bytes, {})",
        Dialect::Ts013 => "decodeUplink({ bytes: bytes, fPort: port }).data",
    };
    let globals = if codec.reads_globals { "this.payload = bytes; this.port = port;" } else { "" };
    let driver = format!("(function (bytes, port) {{ {globals} return JSON.stringify({call}); }})");
    let messages = codec.messages.iter().map(|message| Message { port: message.port, bytes: &message.payload });
    Request { prelude: PRELUDE, script: &codec.script, call, driver, rounds, messages: messages.collect() }
}

/// A running program, which answers each line with a line.
struct Process {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    /// The engine and its version, from the program's first line.
    engine: String,
}

impl Process {
    fn start(command: &mut Command) -> Option<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (requests, replies) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let mut process = Self { child, requests, replies, engine: String::new() };
        process.engine = process.line()?;
        Some(process)
    }

    fn ask(&mut self, request: &str) -> Option<String> {
        writeln!(self.requests, "{request}").ok()?;
        self.line()
    }

    /// The next line; `None` if the program has ended.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.replies.read_line(&mut line).ok()?;
        (length > 0).then(|| line.trim_end().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
