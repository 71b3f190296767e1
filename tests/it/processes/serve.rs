//! `airlock serve` as a process: startup errors, and what survives a crash.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use reqwest::redirect::Policy;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::harness::{
    PASSWORD, airlock, complaint, printed, run,
    server_process::{ServerProcess, get, limited, serve},
};

#[test]
fn sigkill_loses_no_application_function_or_device() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = ServerProcess::start(dir.path());
    let typed = |process: &ServerProcess, arguments: &[&str]| process.type_command(dir.path(), arguments, "");
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
    process.kill();

    let mut process = ServerProcess::start(dir.path());
    process.type_command(dir.path(), &["user", "login", "carol", "--password-stdin"], PASSWORD);
    assert!(typed(&process, &["applications", "list"]).contains("Survives"));
    assert!(typed(&process, &["applications", "pf"]).contains("bytes.length"));
    assert!(typed(&process, &["devices", "list"]).contains("dev-1"));
    typed(&process, &["devices", "simulate", "dev-1", "00"]);
    process.kill();
}

#[test]
fn a_full_disk_ends_the_process_with_an_error_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("airlock.redb");
    let process = ServerProcess::start(dir.path());
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
    let mut process =
        ServerProcess::spawn(limited(&serve(dir.path()), bytes_max).stderr(fs::File::create(&log).unwrap()));
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
    let status = process.wait();
    let error = one_line(&fs::read_to_string(&log).unwrap());
    assert_eq!(status.code(), Some(1), "{error}");
    assert!(error.contains("the store failed") && error.contains("check the disk"), "{error}");

    let process = ServerProcess::start(dir.path());
    process.type_command(dir.path(), &["user", "login", "carol", "--password-stdin"], PASSWORD);
    for id in saved {
        process.type_command(dir.path(), &["applications", "select", &id], "");
        assert!(process.type_command(dir.path(), &["applications", "pf"], "").contains("Decoder"));
    }
}

#[test]
fn an_emptied_store_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    ServerProcess::start(dir.path()).stop();
    fs::write(dir.path().join("airlock.redb"), "").unwrap();
    let error = one_line(&complaint(&run(&mut serve(dir.path()), "")));
    assert!(error.contains("airlock.redb in the store is damaged: restore it from a backup"), "{error}");
}

#[test]
fn sigterm_stops_it_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    ServerProcess::start(dir.path()).stop();
}

// Conformance: the first account: an operator's, by a link that works once
#[test]
fn the_link_to_the_first_account_is_printed_until_somebody_has_registered() {
    let dir = tempfile::tempdir().unwrap();
    let process = ServerProcess::start(dir.path());
    let link = process.first_account_link().expect("nobody has registered").to_owned();
    assert!(link.starts_with(process.place("account")), "{link}");
    process.stop();
    let process = ServerProcess::start(dir.path());
    assert!(process.first_account_link().is_some_and(|other| other != link), "it is another one");
    process.type_command(dir.path(), &["user", "register", "carol", "carol@example.com", "--password-stdin"], PASSWORD);
    process.stop();
    let process = ServerProcess::start(dir.path());
    assert_eq!(process.first_account_link(), None);
    process.stop();
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn a_link_that_was_used_before_the_rest_had_started_is_not_printed_again() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    // The handler starts once somebody has written this file.
    let held = dir.path().join("held.pem");
    assert!(Command::new("mkfifo").arg(&held).status().unwrap().success());
    let mut command = serve(dir.path());
    command.env("AIRLOCK_HANDLER__DISCOVERY_CERTIFICATE_FILE", &held).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let link = loop {
        let line = lines.next_line().await.unwrap().expect("it prints the link");
        if line.contains("/register?first=") {
            break line.trim().to_owned();
        }
    };
    let (site, token) = link.split_once("/register?first=").unwrap();
    let who = [("first", token), ("username", "alice"), ("email", "alice@example.com")];
    let fields = [&who[..], &[("password", PASSWORD)]].concat();
    let client = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let request = client.post(format!("{site}/register")).header("origin", site).form(&fields);
    assert_eq!(request.send().await.unwrap().status(), 303);
    fs::write(&held, fs::read(dir.path().join("ca.cert")).unwrap()).unwrap();
    let mut rest = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap().filter(|line| !line.starts_with("Next")) {
        rest.push(line);
    }
    assert!(rest.iter().any(|line| line.contains("Airlock is ready")), "{rest:?}");
    assert!(!rest.iter().any(|line| line.contains("/register?first=")), "{rest:?}");
}

#[test]
fn a_second_instance_on_the_same_data_fails() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = ServerProcess::start(dir.path());
    let error = one_line(&complaint(&run(&mut serve(dir.path()), "")));
    assert!(error.contains("already running") && error.contains("Redis"), "{error}");
    process.kill();
}

#[test]
fn a_restored_data_directory_is_noticed_with_the_mark_elsewhere() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (data, backup, mark) = (dir.path().join("data"), dir.path().join("backup"), elsewhere.path().join("mark"));
    let serve = || {
        let mut command = serve(&data);
        command.env("AIRLOCK_STORE__MARK_FILE", &mark);
        command
    };
    let copy = |from: &Path, to: &Path| {
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    };
    fs::create_dir(&data).unwrap();
    ServerProcess::spawn(serve().stderr(Stdio::null())).stop();
    copy(&data, &backup);
    ServerProcess::spawn(serve().stderr(Stdio::null())).stop();
    fs::remove_dir_all(&data).unwrap();
    copy(&backup, &data);
    let error = one_line(&complaint(&run(&mut serve(), "")));
    assert!(error.contains("--accept-older-store") && error.contains(mark.to_str().unwrap()), "{error}");
}

#[test]
fn a_restored_store_is_used_only_when_that_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mark) = (dir.path().join("airlock.redb"), dir.path().join("store.mark"));
    ServerProcess::start(dir.path()).stop();
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

    ServerProcess::spawn(serve(dir.path()).arg("--accept-older-store").stderr(Stdio::null())).stop();
    ServerProcess::start(dir.path()).stop();
    fs::remove_file(&mark).unwrap();
    ServerProcess::start(dir.path()).stop();
    assert!(mark.exists());
}

#[test]
fn a_full_audit_file_is_reported_and_does_not_stop_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let process =
        ServerProcess::spawn(serve(dir.path()).env("AIRLOCK_TELEMETRY__AUDIT_FILE", "/dev/full").stderr(Stdio::null()));
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

// Conformance: Options of every command, config, version, selfupdate
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
    let mut process = ServerProcess::start(dir.path());
    process.kill();
    for name in ["account.key", "airlock.redb", "handler.key", "handler.pem"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
}

/// The error line, without log lines.
fn one_line(complaint: &str) -> String {
    let lines: Vec<_> = complaint.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(lines.len(), 1, "{complaint}");
    lines[0].to_owned()
}
