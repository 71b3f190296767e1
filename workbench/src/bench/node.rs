//! Measures the same functions in a local Node.js, each in contexts of its `vm`. Node is no sandbox: a codec could do
//! there what its user can.

use std::{
    io::{self, Read, Write},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use runtime::{Call, Dialect, EntryPoint, Function, Functions, Slot};
use serde::{Deserialize, Serialize};

use super::{figures::Peer, statistics::Summary};

const SCRIPT: &str = include_str!("node/peer.js");
/// A message takes at most three times three seconds there.
const SECONDS_PER_MESSAGE: u64 = 12;
/// Maximum size of what Node answers, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// A local Node.js.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Messages to run of each example.
    pub count: u32,
}

/// Input of the script that Node runs.
#[derive(Serialize)]
struct Task<'a> {
    script: &'a str,
    count: u32,
    messages: &'a [NodeCall],
}

/// A call, as Node is told of it.
#[derive(Serialize)]
pub(super) struct NodeCall {
    dialect: &'static str,
    name: &'static str,
    /// For decoders.
    bytes: Option<String>,
    /// For the other functions.
    json: Option<String>,
    port: u8,
    time: i64,
    extra: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Times { warm: Vec<f64>, fresh: Vec<f64> },
    Failure { failure: String },
}

impl NodeCall {
    pub(super) fn of(functions: &Functions, call: &Call) -> Self {
        let function = match (call.entry_point, call.single_function) {
            (EntryPoint::SingleFunction, Some(function)) => function,
            (EntryPoint::Uplink | EntryPoint::SingleFunction, _) => Function::Decoder,
            (EntryPoint::EncodeDownlink, _) => Function::Encoder,
            (EntryPoint::DecodeDownlink, _) => Function::DecodeDownlink,
        };
        let slot = function.slot();
        let dialect = functions.dialect(slot).unwrap_or(Dialect::Ts013);
        let takes_bytes = crate::codec::takes_bytes(function);
        let text = || String::from_utf8_lossy(&call.payload).into_owned();
        Self {
            dialect: dialect.name(),
            name: match function {
                Function::DecodeDownlink => "decodeDownlink",
                Function::NormalizeUplink => "normalizeUplink",
                _ => name(dialect, slot),
            },
            bytes: takes_bytes.then(|| hex::encode(&call.payload)),
            json: (!takes_bytes).then(text),
            port: call.port,
            time: call.time_ms,
            extra: if call.extra.is_empty() { "{}".to_owned() } else { call.extra.clone() },
        }
    }
}

/// Converters and validators follow a decoder of any dialect, but only v2 has them.
fn name(dialect: Dialect, slot: Slot) -> &'static str {
    dialect.function_name(slot).or_else(|| Dialect::V2.function_name(slot)).unwrap_or_default()
}

impl Node {
    /// Checks that Node.js can be run. Fails if there is none.
    pub fn check(self) -> io::Result<()> {
        let mut command = Command::new("node");
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().map(drop)
    }

    /// The times of each message, in order.
    pub(super) fn measure(self, script: &str, messages: &[NodeCall]) -> Vec<Peer> {
        match self.ask(&Task { script, count: self.count, messages }) {
            Ok(answers) if answers.len() == messages.len() => answers.into_iter().map(peer).collect(),
            Ok(_) => messages.iter().map(|_| Peer::Failed("Node answered for other messages".to_owned())).collect(),
            Err(error) => messages.iter().map(|_| Peer::Failed(error.to_string())).collect(),
        }
    }

    fn ask(self, task: &Task<'_>) -> io::Result<Vec<Answer>> {
        let task_text = serde_json::to_vec(task)?;
        let mut command = Command::new("node");
        command.args(["--input-type=commonjs", "--eval", SCRIPT]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut node = command.spawn()?;
        let time_max = Duration::from_secs(SECONDS_PER_MESSAGE.saturating_mul(1 + task.messages.len() as u64));
        let answer = exchange(&mut node, task_text, time_max);
        // It has ended, or is to end: a message may run forever.
        _ = node.kill();
        node.wait()?;
        Ok(serde_json::from_slice(&answer?)?)
    }
}

/// Writes the task and reads the answer, each on a thread of its own: neither ends before a process that hangs does.
fn exchange(node: &mut Child, task: Vec<u8>, time_max: Duration) -> io::Result<Vec<u8>> {
    let (Some(mut to), Some(from)) = (node.stdin.take(), node.stdout.take()) else {
        return Err(io::Error::other("Node has no standard input or output"));
    };
    thread::spawn(move || to.write_all(&task));
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut answer = Vec::new();
        let read = from.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
        sender.send(read.map(|_| answer))
    });
    receiver.recv_timeout(time_max).unwrap_or_else(|_| Err(io::Error::other("Node does not end")))
}

fn peer(answer: Answer) -> Peer {
    match answer {
        Answer::Times { mut warm, mut fresh } => {
            Peer::Ran { warm: Summary::of(&mut warm), fresh: Summary::of(&mut fresh) }
        }
        Answer::Failure { failure } => Peer::Failed(failure),
    }
}
