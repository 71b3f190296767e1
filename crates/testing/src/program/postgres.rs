//! A PostgreSQL server that runs as long as its test.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::{
    port::Port,
    watchdog::{Watchdog, output},
};
use crate::Certificates;

/// The user of the server, and its password.
const USER: &str = "chirpstack";
const PASSWORD: &str = "correct horse";
/// Number of ports to try; another process may take the chosen one first.
const TRIES_MAX: usize = 3;

/// A server that also speaks TLS; it ends when this is dropped.
pub struct Postgres {
    child: Child,
    port: Port,
    _dir: TempDir,
    programs: PathBuf,
}

impl Postgres {
    /// Starts a server with one user; `None` when the program is missing and the test is skipped.
    pub fn start(certificates: &Certificates) -> Option<Self> {
        let Some(programs) = programs() else {
            crate::skip("PostgreSQL is missing", "install it, on Debian by `apt-get install postgresql`");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let owner = owner();
        give(dir.path(), owner);
        create(&programs, dir.path(), owner);
        for (name, file) in [("server.crt", "server.pem"), ("server.key", "server.key")] {
            let path = dir.path().join("data").join(name);
            fs::copy(certificates.path(file), &path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            give(&path, owner);
        }
        let (child, port) =
            (0..TRIES_MAX).find_map(|_| serve(&programs, dir.path(), owner)).expect("PostgreSQL did not start");
        Some(Self { child, port, _dir: dir, programs })
    }

    /// The address of a database, without a password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@localhost:{}/{database}", self.port.number())
    }

    /// The password of the user.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Runs SQL, and returns its rows as lines of cells between bars.
    ///
    /// # Panics
    ///
    /// If the server refuses it.
    pub fn run(&self, database: &str, sql: &str) -> String {
        self.psql(database, &["-c", sql])
    }

    /// Runs a file of SQL.
    pub fn run_file(&self, database: &str, file: &Path) -> String {
        self.psql(database, &["-f", &file.display().to_string()])
    }

    fn psql(&self, database: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database)]).args(arguments);
        let output = output(command.env("PGPASSWORD", PASSWORD));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Ends all connections at once, as a crash does.
    pub fn stop(&mut self) {
        // What it has started ends with it, unlike after SIGKILL.
        let quit = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        assert!(quit.unwrap().success());
        let _watchdog = Watchdog::of(&self.child);
        self.child.wait().unwrap();
    }
}

/// The directory of the newest version's programs, which Debian keeps out of the path.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let bins = versions.map(|version| version.path().join("bin"));
    bins.filter(|bin| bin.join("initdb").exists()).max()
}

/// The user and group of the server, which does not run as root; `None` where we are another user anyway.
fn owner() -> Option<(u32, u32)> {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let user = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut ids = user.split(':').skip(2).map(|id| id.parse().unwrap());
    is_root.then_some((ids.next()?, ids.next()?))
}

fn give(path: &Path, owner: Option<(u32, u32)>) {
    if let Some((user, group)) = owner {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

fn command(program: PathBuf, dir: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir);
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    command
}

/// Makes the directory of a server.
fn create(programs: &Path, dir: &Path, owner: Option<(u32, u32)>) {
    fs::write(dir.join("password"), PASSWORD).unwrap();
    give(&dir.join("password"), owner);
    let mut command = command(programs.join("initdb"), dir, owner);
    command.args(["--pgdata", "data", "--username", USER, "--pwfile", "password", "--auth", "scram-sha-256"]);
    command.args(["--encoding", "UTF8", "--locale", "C", "--no-sync"]);
    let output = output(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// `None` when the server ended before it was ready, as it does when its port is taken.
fn serve(programs: &Path, dir: &Path, owner: Option<(u32, u32)>) -> Option<(Child, Port)> {
    let port = Port::free();
    let mut command = command(programs.join("postgres"), dir, owner);
    command.args(["-D", "data", "-k", "", "-h", "localhost", "-p", &port.number().to_string()]);
    command.args(["-c", "fsync=off", "-c", "ssl=on", "-c", "listen_addresses=127.0.0.1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&child);
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let is_ready = lines.map_while(Result::ok).any(|line| line.contains("ready to accept connections"));
    is_ready.then_some((child, port))
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.stop();
        }
    }
}
