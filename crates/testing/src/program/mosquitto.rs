//! A Mosquitto broker that runs as long as its test.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use tempfile::TempDir;

use super::port::Port;

/// Debian keeps it where only an administrator's path leads.
const PROGRAMS: [&str; 2] = ["mosquitto", "/usr/sbin/mosquitto"];
/// Number of ports to try; another process may take the chosen one first.
const TRIES_MAX: usize = 5;

/// A broker that keeps sessions on disk; it ends when this is dropped.
pub struct Mosquitto {
    child: Child,
    port: Port,
    dir: TempDir,
}

impl Mosquitto {
    /// Starts a broker that accepts everybody; `None` when the program is missing and the test is skipped.
    pub fn start() -> Option<Self> {
        Self::start_with("allow_anonymous true")
    }

    /// Starts a broker with these lines in its configuration, in which `DIR` stands for its directory.
    pub fn start_with(configuration: &str) -> Option<Self> {
        Self::start_with_files(configuration, &[])
    }

    /// Like [`Self::start_with`], with these files, by name and content, in its directory.
    pub fn start_with_files(configuration: &str, files: &[(&str, &str)]) -> Option<Self> {
        if program().is_none() {
            crate::skip("mosquitto is missing", "install it, on Debian by `apt-get install mosquitto`");
            return None;
        }
        Some((0..TRIES_MAX).find_map(|_| Self::try_start(configuration, files)).expect("mosquitto did not start"))
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port.number()).into()
    }

    /// The address, as settings take it.
    pub fn url(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port.number())
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Stops the broker, which writes its sessions to disk.
    pub fn stop(&mut self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        self.child.wait().unwrap();
    }

    /// Starts the stopped broker again, with the sessions that it had.
    pub fn start_again(&mut self) {
        self.child = serve(self.dir.path()).expect("mosquitto did not start again");
    }

    /// Suspends the broker: it neither answers nor closes its connections.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Resumes the suspended broker.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    fn try_start(configuration: &str, files: &[(&str, &str)]) -> Option<Self> {
        let port = Port::free();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        let configuration = configuration.replace("DIR", &path.to_string());
        files.iter().for_each(|(name, content)| fs::write(dir.path().join(name), content).unwrap());
        let lines = format!(
            "listener {} 127.0.0.1\nuser root\npersistence true\npersistence_location {path}/\n\
             max_queued_messages 0\n{configuration}\n",
            port.number()
        );
        fs::write(dir.path().join("mosquitto.conf"), lines).unwrap();
        let child = serve(dir.path())?;
        Some(Self { child, port, dir })
    }
}

fn program() -> Option<&'static str> {
    let is_installed = |program: &&str| Command::new(program).arg("-h").stdout(Stdio::null()).status().is_ok();
    PROGRAMS.into_iter().filter(|_| crate::programs_may_run()).find(is_installed)
}

/// `None` when the broker ended before it was ready, as it does when its port is taken.
fn serve(dir: &Path) -> Option<Child> {
    let mut child = Command::new(program()?)
        .arg("-c")
        .arg(dir.join("mosquitto.conf"))
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let is_ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains("running"));
    // It must not fill the pipe.
    thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    is_ready.then_some(child)
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
