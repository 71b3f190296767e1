//! `airlock backup` of a running server, and `airlock restore`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serde_json::Value;

use crate::harness::{
    PASSWORD, airlock, complaint, printed, run,
    server_process::{ServerProcess, serve},
};

fn type_command(data: &Path, arguments: &[&str]) -> Output {
    run(airlock(data).args(arguments), PASSWORD)
}

/// A data directory with the user alice, and a backup of it.
fn backed_up(data: &Path, file: &str, options: &[&str]) {
    ServerProcess::start(data).stop();
    printed(&type_command(data, &["account", "users", "create", "alice", "alice@example.com", "--password-stdin"]));
    printed(&type_command(data, &[&["backup", file], options].concat()));
}

fn users(data: &Path) -> String {
    printed(&type_command(data, &["account", "users", "list", "-q"]))
}

// Conformance: backup, restore
#[test]
fn a_backup_under_writes_is_of_one_moment_and_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
    let file = dir.path().join("airlock.backup");
    fs::create_dir(&data).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    let process = ServerProcess::start(&data);
    for arguments in [
        &["user", "register", "carol", "carol@example.com", "--password-stdin"][..],
        &["user", "login", "carol", "--password-stdin"],
    ] {
        process.type_command(&data, arguments, PASSWORD);
    }
    process.type_command(&data, &["applications", "add", "carols-app", "Survives"], "");
    let decoder = "function Decoder(bytes) { return { n: bytes.length }; }";
    process.type_command(&data, &["applications", "pf", "set", "decoder"], decoder);
    process.type_command(&data, &["devices", "register", "before"], "");
    let has_backup = AtomicBool::new(false);
    let backup = thread::scope(|scope| {
        let writes = scope.spawn(|| {
            for number in 0.. {
                process.type_command(&data, &["devices", "register", &format!("dev-{number}")], "");
                if has_backup.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let made = type_command(&data, &["backup", file.to_str().unwrap(), "--with-keys", "--output", "json"]);
        has_backup.store(true, Ordering::Relaxed);
        writes.join().unwrap();
        made
    });
    let backup: Value = serde_json::from_str(&printed(&backup)).unwrap();
    assert!(backup["entries"].as_u64().unwrap() > 5, "{backup}");
    assert_eq!(backup["without"], serde_json::json!([]));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let devices = |process: &ServerProcess, data: &Path| process.type_command(data, &["devices", "list", "-q"], "");
    let all = devices(&process, &data);
    process.stop();

    printed(&type_command(&elsewhere, &["restore", file.to_str().unwrap()]));
    fs::create_dir_all(elsewhere.join("client")).unwrap();
    fs::copy(data.join("client/selection.json"), elsewhere.join("client/selection.json")).unwrap();
    let process = ServerProcess::start(&elsewhere);
    process.type_command(&elsewhere, &["user", "login", "carol", "--password-stdin"], PASSWORD);
    assert!(process.type_command(&elsewhere, &["applications", "pf"], "").contains("bytes.length"));
    let restored = devices(&process, &elsewhere);
    assert!(restored.contains("before") && all.starts_with(&restored) && restored != all, "{restored}\n{all}");
    // The keys of devices are sealed with `handler.key`.
    let shown = process.type_command(&elsewhere, &["devices", "info", "before"], "");
    assert!(shown.contains("AppKey"), "{shown}");
    process.type_command(&elsewhere, &["devices", "simulate", "before", "0001"], "");
    process.stop();
}

// Conformance: backup, restore
#[test]
fn a_store_is_replaced_only_with_yes_and_used_only_when_that_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    backed_up(data, "first.backup", &[]);
    let create = ["account", "users", "create", "bob", "bob@example.com", "--password-stdin"];
    printed(&type_command(data, &create));
    let refused = complaint(&run(airlock(data).args(["restore", "first.backup"]), ""));
    assert!(refused.contains("--yes"), "{refused}");
    assert_eq!(users(data), "alice\nbob\n");

    let restored = printed(&type_command(data, &["restore", "first.backup", "--yes"]));
    assert!(restored.contains("serve --accept-older-store"), "{restored}");
    assert_eq!(users(data), "alice\n");
    let error = complaint(&run(&mut serve(data), ""));
    assert!(error.contains("--accept-older-store") && error.contains("valid again"), "{error}");
    ServerProcess::spawn(serve(data).arg("--accept-older-store").stderr(Stdio::null())).stop();
    ServerProcess::start(data).stop();
    let kept = fs::read_dir(data).unwrap().filter_map(|found| found.unwrap().file_name().into_string().ok());
    let kept: Vec<_> = kept.filter(|name| name.starts_with("airlock-until-")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    fs::rename(data.join(&kept[0]), data.join("airlock.redb")).unwrap();
    assert_eq!(users(data), "alice\nbob\n", "the old store is whole");
}

#[test]
fn a_backup_counts_as_older_even_if_nothing_was_changed_since() {
    let dir = tempfile::tempdir().unwrap();
    backed_up(dir.path(), "first.backup", &[]);
    printed(&type_command(dir.path(), &["restore", "first.backup", "--yes"]));
    let error = complaint(&run(&mut serve(dir.path()), ""));
    assert!(error.contains("--accept-older-store"), "{error}");
}

// Conformance: backup, restore
#[test]
fn key_files_that_are_not_in_the_backup_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    backed_up(&data, "first.backup", &[]);
    let file = data.join("first.backup");
    assert!(!fs::read_to_string(&file).unwrap().contains("key_file\":{"));
    let restore = || type_command(&elsewhere, &["restore", file.to_str().unwrap()]);
    assert!(complaint(&restore()).contains("made without account.key"), "{:?}", restore());
    for name in ["account.key", "handler.key"] {
        fs::copy(data.join(name), elsewhere.join(name)).unwrap();
    }
    assert!(!elsewhere.join("airlock.redb").exists());
    printed(&restore());
    assert_eq!(users(&elsewhere), "alice\n");

    fs::write(elsewhere.join("account.key"), [7; 32]).unwrap();
    let other = complaint(&type_command(&elsewhere, &["restore", file.to_str().unwrap(), "--yes"]));
    assert!(other.contains("account.key in") && other.contains("not the one of this backup"), "{other}");
}

// Conformance: backup, restore
#[test]
fn history_comes_back_as_a_whole_and_only_if_the_backup_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    let process = ServerProcess::start(data);
    for arguments in [
        &["user", "register", "carol", "carol@example.com", "--password-stdin"][..],
        &["user", "login", "carol", "--password-stdin"],
        &["applications", "add", "carols-app", "Survives"],
        &["devices", "register", "dev-1"],
        &["devices", "register", "dev-2"],
        &["devices", "simulate", "dev-1", "01"],
        // It moves everything to Parquet files.
        &["devices", "delete", "dev-2", "--yes"],
        &["devices", "simulate", "dev-1", "02"],
    ] {
        process.type_command(data, arguments, PASSWORD);
    }
    printed(&type_command(data, &["backup", "with.backup", "--with-history"]));
    printed(&type_command(data, &["backup", "without.backup"]));
    process.type_command(data, &["devices", "simulate", "dev-1", "03"], "");
    let payloads = |process: &ServerProcess| {
        process.type_command(data, &["user", "login", "carol", "--password-stdin"], PASSWORD);
        let list = ["history", "list", "--app-id", "carols-app", "--kind", "up", "--output", "csv"];
        let list = process.type_command(data, &list, "");
        list.lines().skip(1).map(|line| line.split(',').nth(5).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(payloads(&process), ["03", "02", "01"]);
    process.stop();
    let restart = || ServerProcess::spawn(serve(data).arg("--accept-older-store").stderr(Stdio::null()));

    printed(&type_command(data, &["restore", "without.backup", "--yes"]));
    let process = restart();
    assert_eq!(payloads(&process), ["03", "02", "01"], "without history, it stays as it is");
    process.stop();

    let backup = fs::read_to_string(data.join("with.backup")).unwrap();
    fs::write(data.join("cut"), &backup[..backup.len() - 10]).unwrap();
    assert!(complaint(&type_command(data, &["restore", "cut", "--yes"])).contains("it is"));
    let restored = printed(&type_command(data, &["restore", "with.backup", "--yes"]));
    assert!(restored.contains("history-until-"), "{restored}");
    let left = fs::read_dir(data).unwrap().filter_map(|found| found.unwrap().file_name().into_string().ok());
    let left: Vec<_> = left.filter(|name| name.starts_with("history")).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    let process = restart();
    assert_eq!(payloads(&process), ["02", "01"]);
    process.stop();
}

#[test]
fn what_cannot_be_backed_up_or_restored_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    let refused = |arguments: &[&str], reason: &str| {
        let complaint = complaint(&type_command(data, arguments));
        assert!(complaint.contains(reason), "{arguments:?}: {complaint}");
    };
    refused(&["backup", "x.backup"], "there is no store in");
    assert!(!data.join("airlock.redb").exists());
    backed_up(data, "first.backup", &[]);
    refused(&["backup", "first.backup"], "first.backup exists");
    refused(&["restore", "nothing.backup"], "cannot restore nothing.backup");
    fs::write(data.join("other"), "{}\n").unwrap();
    refused(&["restore", "other", "--yes"], "it is no backup of Airlock");
    let backup = fs::read(data.join("first.backup")).unwrap();
    fs::write(data.join("cut"), &backup[..backup.len() / 2]).unwrap();
    refused(&["restore", "cut", "--yes"], "it is");
    let process = ServerProcess::start(data);
    refused(&["restore", "first.backup", "--yes"], "already running");
    process.stop();
    assert_eq!(users(data), "alice\n");
    assert!(!data.join("airlock.restoring").exists());
}
