//! `airlock serve` as a process: startup errors, and what survives a crash.

use std::{
    fs,
    io::{BufRead, BufReader, Lines, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use crate::harness::{PASSWORD, airlock, complaint, printed, run};

/// The services in a process of their own.
struct Process {
    child: Child,
    places: Vec<(String, String)>,
    /// Kept open, because the process fails to report its stop otherwise.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts `airlock serve` and waits until it prints its addresses.
    fn start(dir: &Path) -> Self {
        Self::spawn(serve(dir).stderr(Stdio::null()))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let places = output
            .by_ref()
            .map_while(Result::ok)
            .take_while(|line| !line.starts_with("Next"))
            .filter_map(|line| line.trim().split_once("  ").map(|(name, place)| (name.to_owned(), place.to_owned())))
            .collect();
        Self { child, places, _output: output }
    }

    fn place(&self, name: &str) -> &str {
        let place = self.places.iter().find(|(known, _)| known == name);
        place.map(|(_, place)| place.split(' ').next().unwrap()).expect("it says where that is")
    }

    fn command(&self, dir: &Path, arguments: &[&str], input: &str) -> Output {
        let mut command = airlock(dir);
        command.args(["--auth-server", self.place("account"), "--discovery-address", self.place("discovery")]);
        run(command.args(arguments), input)
    }

    fn type_command(&self, dir: &Path, arguments: &[&str], input: &str) -> String {
        printed(&self.command(dir, arguments, input))
    }

    fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn sigkill_loses_no_application_function_or_device() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::start(dir.path());
    let typed = |process: &Process, arguments: &[&str]| process.type_command(dir.path(), arguments, "");
    for arguments in [
        &["user", "register", "carol", "carol@example.com", "--password-stdin"][..],
        &["user", "login", "carol", "--password-stdin"],
    ] {
        process.type_command(dir.path(), arguments, PASSWORD);
    }
    typed(&process, &["applications", "add", "carols-app", "Survives"]);
    let decoder = "function Decoder(bytes) { return { n: bytes.length }; }";
    process.type_command(dir.path(), &["applications", "pf", "set", "decoder"], decoder);
    typed(&process, &["devices", "register", "dev-1"]);
    process.child.kill().unwrap();
    process.child.wait().unwrap();

    let mut process = Process::start(dir.path());
    process.type_command(dir.path(), &["user", "login", "carol", "--password-stdin"], PASSWORD);
    assert!(typed(&process, &["applications", "list"]).contains("Survives"));
    assert!(typed(&process, &["applications", "pf"]).contains("bytes.length"));
    assert!(typed(&process, &["devices", "list"]).contains("dev-1"));
    typed(&process, &["devices", "simulate", "dev-1", "00"]);
    process.child.kill().unwrap();
    process.child.wait().unwrap();
}

#[test]
fn a_full_disk_ends_the_process_with_an_error_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("airlock.redb");
    let process = Process::start(dir.path());
    for arguments in [
        &["user", "register", "carol", "carol@example.com", "--password-stdin"][..],
        &["user", "login", "carol", "--password-stdin"],
    ] {
        process.type_command(dir.path(), arguments, PASSWORD);
    }
    process.stop();

    // The limit on files has the effect of a full disk on the store.
    let log = dir.path().join("log");
    let bytes_max = fs::metadata(&path).unwrap().len() + 400_000;
    let mut process = Process::spawn(limited(&serve(dir.path()), bytes_max).stderr(fs::File::create(&log).unwrap()));
    process.type_command(dir.path(), &["user", "login", "carol", "--password-stdin"], PASSWORD);
    let mut saved = Vec::new();
    for number in 0..100 {
        let (id, function) =
            (format!("carols-app-{number}"), format!("function Decoder() {{}} // {}", "x".repeat(200_000)));
        let commands =
            [(&["applications", "add", &id, "Large"][..], ""), (&["applications", "pf", "set", "decoder"], &function)];
        if !commands
            .into_iter()
            .all(|(arguments, input)| process.command(dir.path(), arguments, input).status.success())
        {
            break;
        }
        saved.push(id);
    }
    let status = process.child.wait().unwrap();
    let error = one_line(&fs::read_to_string(&log).unwrap());
    assert_eq!(status.code(), Some(1), "{error}");
    assert!(error.contains("the store failed") && error.contains("check the disk"), "{error}");

    let process = Process::start(dir.path());
    process.type_command(dir.path(), &["user", "login", "carol", "--password-stdin"], PASSWORD);
    for id in saved {
        process.type_command(dir.path(), &["applications", "select", &id], "");
        assert!(process.type_command(dir.path(), &["applications", "pf"], "").contains("Decoder"));
    }
}

#[test]
fn an_emptied_store_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    Process::start(dir.path()).stop();
    fs::write(dir.path().join("airlock.redb"), "").unwrap();
    let error = one_line(&complaint(&run(&mut serve(dir.path()), "")));
    assert!(error.contains("airlock.redb in the store is damaged: restore it from a backup"), "{error}");
}

#[test]
fn sigterm_stops_it_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    Process::start(dir.path()).stop();
}

#[test]
fn a_second_instance_on_the_same_data_fails() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::start(dir.path());
    let error = one_line(&complaint(&run(&mut serve(dir.path()), "")));
    assert!(error.contains("already running") && error.contains("Redis"), "{error}");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
}

#[test]
fn a_restored_store_is_used_only_when_that_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mark) = (dir.path().join("airlock.redb"), dir.path().join("store.mark"));
    Process::start(dir.path()).stop();
    let backup = fs::read(&store).unwrap();
    let users = |arguments: &[&str]| {
        printed(&run(airlock(dir.path()).args(["account", "users"]).args(arguments), PASSWORD));
    };
    // Also what a command does while the server is stopped is noticed.
    users(&["create", "alice", "alice@example.com", "--password-stdin"]);
    fs::write(&store, &backup).unwrap();
    let error = one_line(&complaint(&run(&mut serve(dir.path()), "")));
    assert!(error.contains("--accept-older-store") && error.contains("valid again"), "{error}");
    let listed = run(airlock(dir.path()).args(["account", "users", "list"]), "");
    assert!(listed.status.success(), "commands can prepare the older store: {listed:?}");
    assert!(String::from_utf8_lossy(&listed.stderr).contains("--accept-older-store"), "{listed:?}");
    one_line(&complaint(&run(&mut serve(dir.path()), "")));

    Process::spawn(serve(dir.path()).arg("--accept-older-store").stderr(Stdio::null())).stop();
    Process::start(dir.path()).stop();
    fs::remove_file(&mark).unwrap();
    Process::start(dir.path()).stop();
    assert!(mark.exists());
}

#[test]
fn a_full_audit_file_is_reported_and_does_not_stop_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let process =
        Process::spawn(serve(dir.path()).env("AIRLOCK_TELEMETRY__AUDIT_FILE", "/dev/full").stderr(Stdio::null()));
    let metrics = process.place("metrics");
    let ready = get(&metrics.replace("/metrics", "/readyz"));
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("the audit log cannot be written"), "{ready}");
    let metrics = get(metrics);
    assert!(metrics.contains("airlock_audit_writable 0"), "{metrics}");
    let mut register = airlock(dir.path());
    register.args(["--auth-server", process.place("account")]);
    let refused = run(register.args(["user", "register", "carol", "carol@example.com", "--password-stdin"]), PASSWORD);
    assert!(complaint(&refused).contains("the audit log cannot be written"), "{refused:?}");
    process.stop();
}

/// The response to a GET request, with its head.
fn get(url: &str) -> String {
    let (address, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    connection
        .write_all(format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn names_a_port_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for setting in ["AIRLOCK_LISTEN__ACCOUNT", "AIRLOCK_LISTEN__HANDLER", "AIRLOCK_BROKER__LISTEN"] {
        let error = one_line(&complaint(&run(serve(dir.path()).env(setting, &address), "")));
        assert!(error.contains(&address) && error.contains("listens there"), "{setting}: {error}");
    }
}

#[test]
fn names_an_unwritable_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let mut command = serve(dir.path());
    let error = one_line(&complaint(&run(command.arg("--data").arg(file.join("data")), "")));
    assert!(error.contains("file/data") && error.contains("--data"), "{error}");
}

#[test]
fn names_an_unknown_setting() {
    let dir = tempfile::tempdir().unwrap();
    let error = one_line(&complaint(&run(serve(dir.path()).env("AIRLOCK_LISTEN__ACOUNT", "x"), "")));
    assert!(error.contains("listen.acount") && error.contains("AIRLOCK_LISTEN__ACOUNT"), "{error}");
    fs::write(dir.path().join("airlock.toml"), "[handler]\ncolour = \"red\"\n").unwrap();
    let error = one_line(&complaint(&run(&mut serve(dir.path()), "")));
    assert!(error.contains("handler.colour") && error.contains("airlock.toml"), "{error}");
}

#[test]
fn printed_settings_can_be_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let print = |dir: &Path| printed(&run(airlock(dir).args(["config", "print"]), ""));
    let first = print(dir.path());
    assert!(first.contains("sets_max") && first.contains("[sandbox.limits]"), "{first}");
    fs::write(dir.path().join("airlock.toml"), &first).unwrap();
    assert_eq!(print(dir.path()), first);
}

#[test]
fn only_the_owner_can_read_secrets_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::start(dir.path());
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    for name in ["account.key", "airlock.redb", "handler.key", "handler.pem"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
}

/// `airlock serve` on free ports.
fn serve(dir: &Path) -> Command {
    let mut command = airlock(dir);
    command.arg("serve");
    for name in ["ACCOUNT", "DISCOVERY", "DISCOVERY_HTTP", "HANDLER", "HANDLER_HTTP"] {
        command.env(format!("AIRLOCK_LISTEN__{name}"), "127.0.0.1:0");
    }
    command.env("AIRLOCK_BROKER__LISTEN", "127.0.0.1:0").env("AIRLOCK_TELEMETRY__LISTEN", "127.0.0.1:0");
    command
}

/// The same command, which cannot make a file longer than this.
fn limited(command: &Command, bytes_max: u64) -> Command {
    let mut limited = Command::new("sh");
    // Without the trap, the signal would end the process before it sees the error.
    limited.args(["-c", "trap '' XFSZ; ulimit -f $0; exec \"$@\"", &(bytes_max / 512).to_string()]);
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

/// The error line, without log lines.
fn one_line(complaint: &str) -> String {
    let lines: Vec<_> = complaint.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(lines.len(), 1, "{complaint}");
    lines[0].to_owned()
}
