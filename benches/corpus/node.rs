//! The same codecs in Node's `vm`: a child process measures one codec at a time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::codecs::Codec;
use crate::rounds::Timing;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/vm.js");

pub(crate) struct Node {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

#[derive(Serialize)]
struct Request<'a> {
    text: &'a str,
    function: &'a str,
    rounds: usize,
    /// Port and bytes.
    messages: Vec<(u8, &'a [u8])>,
}

#[derive(Deserialize)]
struct Reply {
    best_us: f64,
    median_us: f64,
}

impl Node {
    /// Starts Node if it is installed.
    pub(crate) fn start() -> Option<Self> {
        let mut child = Command::new("node").arg(SCRIPT).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (requests, replies) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Self { child, requests, replies })
    }

    /// The time per message of `codec`; `None` if it does not work in Node.
    pub(crate) fn time(&mut self, codec: &Codec, rounds: usize) -> Option<Timing> {
        let messages = codec.messages.iter().map(|message| (message.port, message.payload.as_slice())).collect();
        let request = Request { text: &codec.script, function: codec.function_name(), rounds, messages };
        writeln!(self.requests, "{}", serde_json::to_string(&request).unwrap()).unwrap();
        let mut line = String::new();
        self.replies.read_line(&mut line).unwrap();
        let reply: Option<Reply> = serde_json::from_str(&line).unwrap();
        reply.map(|reply| Timing { best: reply.best_us, median: reply.median_us })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
