//! A Redis server of our own that keeps nothing and ends with its test.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
};

/// How often a port that somebody else took meanwhile is replaced.
const TRIES_MAX: usize = 5;

/// The server; it ends with this value.
pub(crate) struct RedisProcess {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl RedisProcess {
    /// Starts one; none when the program is missing and nobody insists on it.
    pub(crate) fn start() -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            let required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
            assert!(!required, "redis-server is missing: install it, on Debian by `apt-get install redis-server`");
            println!("skipped: redis-server is missing; install it to test on Redis");
            return None;
        }
        Some((0..TRIES_MAX).find_map(|_| Self::try_start()).expect("redis-server did not start"))
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// None when the server ended before it was ready, as it does when its port is taken.
    fn try_start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        let mut child = command.arg("--dir").arg(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
        let process = Self { child, port, _folder: folder };
        ready.then_some(process)
    }
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
