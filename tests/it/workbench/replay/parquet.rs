//! A Parquet file of another program, which `tests/fixtures/replay/plain.py` wrote, and those that a replay writes.
//! Those of our own history are in a transcript.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{command, counts, report, with_codec};
use crate::harness::{complaint, run};

const PLAIN: &[u8] = include_bytes!("../../../fixtures/replay/plain.parquet");
const COLUMNS: [&str; 8] =
    ["--column", "payload=frame", "--column", "object=decoded", "--column", "time=at", "--column", "device=sensor"];
/// An uplink that is decoded to something else, one that fails, one without an object, and one that failed before.
const EVENTS: &str = r#"{"deduplicationId": "1", "time": "2026-11-20T10:00:00.5Z", "deviceInfo": {"applicationId": "cellar", "devEui": "0102030405060708"}, "fPort": 2, "data": "CVw=", "object": {"celsius": 239.6}}
{"time": "2026-11-21T10:00:00Z", "deviceInfo": {"devEui": "0102030405060709"}, "fPort": 2, "data": "CQ==", "object": {"celsius": 1}}
{"deviceInfo": {}, "fPort": 200, "data": "CVw="}
{"deviceInfo": {}, "fPort": 2, "data": ""}
"#;

#[test]
fn plain_files_are_read_by_the_names_of_their_columns() {
    let dir = with_codec();
    fs::write(dir.path().join("plain.parquet"), PLAIN).unwrap();
    let (found, code) = report(&mut command(dir.path(), "plain.parquet", &COLUMNS), "");
    assert_eq!((counts(&found), code), ([1, 1, 1, 1, 0], Some(1)), "{found:#}");
    let example = &found["fields"]["celsius"]["example"];
    assert_eq!((&example["place"], &example["device"]), (&json!("row 2"), &json!("a")));
    assert_eq!((&example["time"], &example["port"]), (&json!("2026-11-20T10:00:00Z"), &json!(2)));
    for (arguments, reason) in [
        (&[][..], "use --column payload=NAME"),
        (&["--column", "payload=decoded"], "use --encoding"),
        (&["--column", "payload=ignored.list.element"], "has lists"),
        (&["--column", "payload=missing"], "has no column `missing`"),
    ] {
        let output = run(&mut command(dir.path(), "plain.parquet", arguments), "");
        assert!(complaint(&output).contains(reason), "{arguments:?}: {output:?}");
    }
}

#[test]
fn a_file_that_is_not_whole_or_no_parquet_is_refused() {
    let dir = with_codec();
    let changed = |place: usize| {
        let mut bytes = PLAIN.to_vec();
        bytes[place..place + 40].fill(0xff);
        bytes
    };
    for bytes in
        [&[][..], b"PAR1", &PLAIN[..PLAIN.len() / 2], b"{\"data\": \"\"}", &changed(4), &changed(PLAIN.len() - 60)]
    {
        fs::write(dir.path().join("bad.parquet"), bytes).unwrap();
        let output = run(&mut command(dir.path(), "bad.parquet", &COLUMNS), "");
        assert!(complaint(&output).contains("bad.parquet is damaged, or not a Parquet file"), "{output:?}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn a_file_under_another_name_is_recognized() {
    let dir = with_codec();
    fs::write(dir.path().join("plain.dat"), PLAIN).unwrap();
    let output = run(&mut command(dir.path(), "plain.dat", &COLUMNS), "");
    assert!(complaint(&output).contains("plain.dat is a Parquet file: use --format parquet"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
    let (found, _) =
        report(&mut command(dir.path(), "plain.dat", &[&COLUMNS[..], &["--format", "parquet"]].concat()), "");
    assert_eq!(counts(&found), [1, 1, 1, 1, 0], "{found:#}");
    let output = run(&mut command(dir.path(), "-", &[]), "PAR1");
    assert!(complaint(&output).contains("name a file instead of `-`"), "{output:?}");
}

// Conformance: A replay writes each uplink with both objects, as lines of JSON or as Parquet
#[test]
fn a_file_of_rows_has_what_lines_have() {
    let dir = with_codec();
    let lines = written(dir.path(), "-", &["--output", "out.jsonl"], EVENTS);
    written(dir.path(), "-", &["--output", "out.parquet"], EVENTS);
    let again = ["--column", "object=old", "--output", "again.jsonl"];
    assert_eq!(written(dir.path(), "out.parquet", &again, ""), lines);
    // The columns that a source does not have, read as if they were those of one.
    let columns = ["--column", "application=verdict", "--column", "id=failure", "--column", "object=new"];
    let results = written(dir.path(), "out.parquet", &[&columns[..], &["--output", "results.jsonl"]].concat(), "");
    assert_eq!((lines.len(), results.len()), (4, 4));
    for (line, result) in lines.iter().zip(&results) {
        let read = ["application", "id", "old"].map(|name| &result[name]);
        assert_eq!(read, ["verdict", "failure", "new"].map(|name| &line[name]), "{line} {result}");
    }
    let fuels = written(dir.path(), "out.parquet", &["--column", "id=fuel", "--output", "fuels.jsonl"], "");
    for (line, row) in lines.iter().zip(&fuels) {
        let fuel: u64 = row["id"].as_str().unwrap().parse().unwrap();
        assert!(fuel > 0 && line["fuel"] == fuel, "{line} {row}");
    }
    let verdicts: Vec<_> = lines.iter().map(|line| line["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["changed", "newly_failing", "newly_decoded", "still_failing"]);
}

/// Replays, and returns the lines of the last argument's file, if they are lines.
fn written(dir: &Path, from: &str, arguments: &[&str], input: &str) -> Vec<Value> {
    let (found, _) = report(&mut command(dir, from, arguments), input);
    assert_eq!((&found["uplinks"], &found["damaged"]), (&json!(4), &json!(0)), "{found:#}");
    let name = arguments.last().unwrap();
    if name.ends_with(".parquet") {
        return Vec::new();
    }
    let lines = fs::read_to_string(dir.join(name)).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// Conformance: A replay writes each uplink with both objects, as lines of JSON or as Parquet
#[test]
fn a_replay_that_fails_leaves_the_file_of_rows_that_was_there() {
    let dir = with_codec();
    let mut bytes = PLAIN.to_vec();
    bytes[4..44].fill(0xff);
    fs::write(dir.path().join("bad.parquet"), bytes).unwrap();
    fs::write(dir.path().join("out.parquet"), "before").unwrap();
    let arguments = [&COLUMNS[..], &["--output", "out.parquet"]].concat();
    complaint(&run(&mut command(dir.path(), "bad.parquet", &arguments), ""));
    assert_eq!(fs::read_to_string(dir.path().join("out.parquet")).unwrap(), "before");
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let unfinished: Vec<_> = names.filter(|name| name.starts_with(".tmp")).collect();
    assert!(unfinished.is_empty(), "{unfinished:?}");
}
