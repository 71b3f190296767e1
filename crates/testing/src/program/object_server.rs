//! A server of S3 that runs as long as its test: moto, from PyPI.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::Python;

/// Packages that moto needs for S3 over HTTP; its own list has more.
const PACKAGES: [&str; 3] = ["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"];
const SCRIPT: &str = include_str!("object_server/server.py");

/// A server with an empty bucket, `history`, in memory; it ends when this is dropped.
pub struct ObjectServer {
    child: Child,
    /// The address at which it listens.
    pub address: SocketAddr,
    /// Id of the access key that may do everything.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: String,
}

impl ObjectServer {
    /// Starts a server, whose packages are installed into `dir` unless they are there; `None` when the test is skipped.
    pub fn start(dir: &Path) -> Option<Self> {
        let python = Python::install(dir, &PACKAGES)?;
        let mut command = Command::new(python.program("python"));
        let mut child = command.args(["-c", SCRIPT]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut next = || words.next().expect("the server says its port and its key");
        let address = ([127, 0, 0, 1], next().parse().unwrap()).into();
        Some(Self { child, address, access_key_id: next(), secret_access_key: next() })
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
