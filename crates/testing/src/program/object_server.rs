//! A server of S3 that runs as long as its test: moto, from PyPI.

use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::Python;

/// Packages that moto needs for S3 over HTTP; its own list has more.
const PACKAGES: [&str; 3] = ["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"];
const SCRIPT: &str = include_str!("object_server/server.py");

/// A server with an empty bucket, `history`, in memory; it ends when this is dropped.
pub struct ObjectServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The address at which it listens.
    pub address: SocketAddr,
    /// Id of the access key that may do everything.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: String,
}

/// The answer to a request for a range of an object.
#[derive(Clone, Copy, Debug)]
pub enum RangeAnswer {
    /// The range.
    Right,
    /// The whole object, as if the server knew no ranges.
    Whole,
    /// Half of the range, as if that were all.
    Short,
    /// Half of the range, and the end of the connection.
    Cut,
    /// Once the range, after which the object is written again with the same bytes, and has another tag.
    Rewritten,
    /// Once the range, after which the object has other bytes.
    Changed,
    /// Once the range, after which the object is deleted.
    Gone,
    /// None before another answer is chosen.
    Held,
}

impl ObjectServer {
    /// Starts a server, whose packages are installed into `dir` unless they are there; `None` when the test is skipped.
    pub fn start(dir: &Path) -> Option<Self> {
        let python = Python::install(dir, &PACKAGES)?;
        let mut command = Command::new(python.program("python"));
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut next = || words.next().expect("the server says its port and its key");
        let address = ([127, 0, 0, 1], next().parse().unwrap()).into();
        Some(Self { child, input, output, address, access_key_id: next(), secret_access_key: next() })
    }

    /// Has it answer requests for ranges so from now on.
    pub fn answer_ranges(&mut self, answer: RangeAnswer) {
        let word = answer.word();
        writeln!(self.input, "{word}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word, "the server says that it does");
    }
}

impl RangeAnswer {
    fn word(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Whole => "whole",
            Self::Short => "short",
            Self::Cut => "cut",
            Self::Rewritten => "rewritten",
            Self::Changed => "changed",
            Self::Gone => "gone",
            Self::Held => "held",
        }
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
