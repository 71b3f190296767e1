//! Files of history that cannot be read are named by every command whose result lacks their records, and it ends with the
//! exit code of what cannot be used.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use testing::without_checksums;

use super::CommandLine;

/// Puts a file that is not ours beside those of the application.
fn put_foreign_file(history: &Path) -> PathBuf {
    let day = fs::read_dir(history.join("app=my-app")).unwrap().next().unwrap().unwrap().path();
    let path = day.join("1000000000000-1990000009000-foreign.parquet");
    fs::write(&path, "not a Parquet file").unwrap();
    path
}

/// Commands that read a directory themselves name it, too.
fn check_directory(line: &CommandLine, history: &Path, unknown: &str, unreadable: &str) {
    let dir = history.to_str().unwrap();
    let output = line.network.type_command(&["history", "list", "--dir", dir], "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(5) && said.contains(unreadable), "{said}");
    assert!(said.contains("1 file of history cannot be read: its records are missing"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("dev-1"), "what can be read is there");
    for (arguments, expected) in [
        (&["history", "info", unknown, "--dir", dir][..], "may be in a file that cannot be read"),
        (&["history", "export", "-", "--dir", dir], "records are missing"),
    ] {
        let (code, error) = line.refused(arguments, "");
        assert!(code == 5 && error.contains(unreadable) && error.contains(expected), "{code} {error}");
    }
}

/// A file whose name is no handler's has no records: only commands that read the directory themselves name it.
fn check_left_out(line: &CommandLine, history: &Path, unknown: &str) {
    let dir = history.to_str().unwrap();
    for arguments in [
        &["history", "list"][..],
        &["history", "decode", "--version", "1"],
        &["history", "verify"],
        &["history", "replay", "--dry-run"],
        &["history", "export", "-"],
        &["history", "list", "--dir", dir],
        &["history", "export", "-", "--dir", dir],
    ] {
        let output = line.network.type_command(arguments, "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("missing"), "{arguments:?}: {said}");
        let is_named = said.contains("foreign.parquet is left out: its name is not that of a file of history");
        assert_eq!(is_named, arguments.contains(&"--dir"), "{arguments:?}: {said}");
    }
    let (_, error) = line.refused(&["history", "info", unknown, "--dir", dir], "");
    assert!(error.contains("not found"), "{error}");
}

/// Services whose history has one uplink, in a Parquet file.
async fn with_a_sealed_uplink() -> CommandLine {
    let line = CommandLine::start().await;
    for dev_id in ["dev-1", "gone"] {
        line.typed(&["devices", "register", dev_id]);
    }
    line.run_with_input(
        &["applications", "pf", "set", "decoder", "--skip-test"],
        "function Decoder(bytes) { return { first: bytes[0] }; }",
    );
    line.typed(&["devices", "simulate", "dev-1", "07"]);
    // Deleting a device moves everything to Parquet files.
    line.typed(&["devices", "delete", "gone", "--yes"]);
    line
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_read_are_named() {
    let line = with_a_sealed_uplink().await;
    let history = line.network.stack.settings().data_dir.join("history");
    let foreign = put_foreign_file(&history);

    let named = "the handler cannot read 1000000000000-1990000009000-foreign.parquet";
    for (arguments, found) in [
        (&["history", "list"][..], "07"),
        (&["history", "decode", "--version", "1"], "1 equal"),
        (&["history", "verify"], "1 equal"),
        (&["history", "replay", "--dry-run"], "that nobody receives"),
    ] {
        let output = line.network.type_command(arguments, "");
        let [printed, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.code() == Some(5) && said.contains(named), "{arguments:?}: {said}");
        assert!(said.contains("1 file of history cannot be read"), "{arguments:?}: {said}");
        assert!(printed.contains(found), "{arguments:?}: {printed}");
    }
    // Programs find it in the report as well.
    let output = line.network.type_command(&["history", "verify", "--output", "json"], "");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["unreadable_files"], serde_json::json!(["1000000000000-1990000009000-foreign.parquet"]));
    assert_eq!(output.status.code(), Some(5));
    let output = line.network.type_command(&["history", "list", "--kind", "up", "--quiet"], "");
    let id = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let output = line.network.type_command(&["history", "info", &id], "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(named), "only corrections of it may be missing: {said}");
    let unknown = format!("{}ffffffff", &id[..20]);
    let (_, error) = line.refused(&["history", "info", &unknown], "");
    let expected = "may be in history that cannot be read now: 1000000000000-1990000009000-foreign.parquet: try again";
    assert!(error.contains(expected), "{error}");
    let file = line.network.dir.path().join("messages.jsonl");
    let (code, error) = line.refused(&["history", "export", file.to_str().unwrap()], "");
    assert!(code == 5 && error.contains(named), "{code} {error}");
    let exported = fs::read_to_string(&file).unwrap();
    assert!(exported.contains(r#"{"first":7}"#), "what can be read is there: {exported}");

    check_directory(&line, &history, &unknown, "1000000000000-1990000009000-foreign.parquet");
    fs::rename(&foreign, foreign.with_file_name("foreign.parquet")).unwrap();
    check_left_out(&line, &history, &unknown);
    let left = history.join("tail/left");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("foreign.tail"), "not a block").unwrap();
    check_directory(&line, &history, &unknown, "foreign.tail");
    line.network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_checksums_are_counted() {
    let line = with_a_sealed_uplink().await;
    assert!(!line.typed(&["history", "verify"]).contains("without checksums"));

    let history = line.network.stack.settings().data_dir.join("history/app=my-app");
    let days = fs::read_dir(history).unwrap().map(|day| day.unwrap().path());
    let files = days.flat_map(|day| fs::read_dir(day).unwrap()).map(|file| file.unwrap().path());
    let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|extension| extension == "parquet")).collect();
    for file in &files {
        fs::write(file, without_checksums(&fs::read(file).unwrap())).unwrap();
    }
    let said = line.typed(&["history", "verify"]);
    assert!(said.contains("1 equal") && said.contains("rows without checksums"), "{said}");
    for command in ["verify", "decode"] {
        let said = line.typed(&["history", command, "--output", "json"]);
        let report: serde_json::Value = serde_json::from_str(&said).unwrap();
        let unchecked = report["unchecked_files"].as_object().unwrap();
        assert!(unchecked.values().all(|rows| rows.as_u64() > Some(0)), "{unchecked:?}");
        let names: BTreeSet<_> = unchecked.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect::<BTreeSet<_>>()
        );
    }
    line.network.stack.stop().await;
}
