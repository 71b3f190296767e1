//! A Redis server of our own, which ends with its test.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

/// How often a port that somebody else took meanwhile is replaced.
const TRIES_MAX: usize = 5;

/// The server; it ends with this value.
pub(crate) struct RedisProcess {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
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

    fn try_start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let child = serve(port, folder.path())?;
        Some(Self { child, port, folder })
    }
}

#[allow(dead_code, reason = "not every test that starts one lets it fail")]
impl RedisProcess {
    /// Kills the server; what it acknowledged is in its folder.
    pub(crate) fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server that was stopped, with what it had.
    pub(crate) fn start_again(&mut self) {
        self.child = serve(self.port, self.folder.path()).expect("redis-server did not start again");
    }

    /// Has the server do nothing, neither answer nor end.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }
}

/// None when the server ended before it was ready, as it does when its port is taken.
fn serve(port: u16, folder: &Path) -> Option<Child> {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    // It writes before it answers, and whoever kills it leaves the kernel alive.
    command.args(["--appendonly", "yes", "--appendfsync", "no"]);
    let mut child = command.arg("--dir").arg(folder).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
    ready.then_some(child)
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
