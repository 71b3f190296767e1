//! A Parquet file of another program: `tests/fixtures/replay/plain.py` wrote it. Our own are in a transcript.

use std::fs;

use serde_json::json;

use super::{command, counts, report, with_codec};
use crate::harness::{complaint, run};

const PLAIN: &[u8] = include_bytes!("../../fixtures/replay/plain.parquet");
const COLUMNS: [&str; 8] =
    ["--column", "payload=frame", "--column", "object=decoded", "--column", "time=at", "--column", "device=sensor"];

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
        assert!(complaint(&output).contains("bad.parquet is damaged, or no Parquet file"), "{output:?}");
        assert_eq!(output.status.code(), Some(2));
    }
}
