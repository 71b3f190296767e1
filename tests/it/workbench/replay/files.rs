//! Files as networks, databases and we write them.

use std::fs;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{command, counts, report, with_codec};
use crate::harness::{complaint, printed, run};

const EUI: &str = "0102030405060708";

fn chirpstack(data: &[u8], object: &Value) -> Value {
    json!({
        "deduplicationId": "3ac7e3c4-4401-4b8d-9386-a5c902f9202d",
        "time": "2026-11-20T10:00:00.5+00:00",
        "deviceInfo": {
            "applicationId": "9f0ad1b6-5cd5-4dcd-8d8a-6a0e1a1e8c3b", "applicationName": "Cellar",
            "deviceName": "Meter 1", "devEui": EUI,
        },
        "fCnt": 7, "fPort": 2, "data": STANDARD.encode(data), "object": object, "rxInfo": [{"rssi": -50}],
    })
}

fn things_stack(data: &[u8], object: &Value) -> Value {
    json!({
        "end_device_ids": {"device_id": "meter-1", "dev_eui": EUI, "application_ids": {"application_id": "cellar"}},
        "received_at": "2026-11-21T10:00:00Z",
        "uplink_message": {"f_port": 2, "frm_payload": STANDARD.encode(data), "decoded_payload": object},
    })
}

fn own(data: &[u8], outcome: &str, result: &Value) -> Value {
    json!({
        "id": "0196f3c2a1b40000002a00000001", "received": "2026-11-22T10:00:00Z", "app_id": "cellar", "dev_id": "meter-1",
        "kind": "up", "port": 2, "payload": STANDARD.encode(data), "outcome": outcome, "result": result,
    })
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// 23.96 degrees.
const WARM: &[u8] = &[0x09, 0x5c];

// Conformance: Stored uplinks of other networks run through a codec
#[test]
fn every_kind_of_difference_is_counted_with_an_example() {
    let dir = with_codec();
    let good = json!({"celsius": 23.96, "port": 2.0});
    let input = lines(&[
        chirpstack(WARM, &good),
        chirpstack(WARM, &json!({"celsius": 239.6, "port": 2})),
        chirpstack(WARM, &Value::Null),
        chirpstack(&[9], &json!({"celsius": 1})),
        chirpstack(&[], &Value::Null),
        things_stack(WARM, &good),
        own(WARM, "decoded", &good),
        own(WARM, "failed", &json!("")),
        json!({"time": "2026-11-20T10:00:00Z", "deviceInfo": {"devEui": EUI}, "devAddr": "01020304"}),
    ]);
    let (found, code) = report(&mut command(dir.path(), "-", &[]), &input);
    assert_eq!((counts(&found), &found["others"], code), ([3, 1, 1, 2, 1], &json!(1), Some(1)), "{found:#}");
    let celsius = &found["fields"]["celsius"];
    assert_eq!((&celsius["uplinks"], found["fields"].as_object().unwrap().len()), (&json!(1), 1), "{found:#}");
    assert_eq!(celsius["example"]["place"], "line 2");
    assert_eq!((&celsius["example"]["old"], &celsius["example"]["new"]), (&json!("239.6"), &json!("23.96")));
    assert_eq!((&celsius["example"]["device"], &celsius["example"]["payload"]), (&json!(EUI), &json!("095c")));
    let failures = found["newly_failing_by"].as_object().unwrap();
    assert!(failures.keys().next().unwrap().contains("too short: 1"), "{failures:?}");
    assert_eq!(found["newly_decoded_examples"][0]["place"], "line 3");
    assert_eq!(found["days"]["2026-11-20"]["uplinks"], 5);
}

#[test]
fn the_report_is_the_same_for_any_number_of_threads() {
    let dir = with_codec();
    let object = |number: u64| json!({ format!("field{}", number % 7): number, "celsius": number });
    let input: Vec<Value> =
        (0..5000_u64).map(|number| chirpstack(&number.to_be_bytes()[6..], &object(number))).collect();
    let input = lines(&input);
    let reports = ["1", "5"].map(|jobs| {
        let (mut found, _) = report(&mut command(dir.path(), "-", &["--jobs", jobs]), &input);
        found.as_object_mut().unwrap().retain(|name, _| !["started", "ended"].contains(&name.as_str()));
        found
    });
    assert_eq!(reports[0], reports[1]);
    assert_eq!(counts(&reports[0]), [0, 5000, 0, 0, 0]);
}

#[test]
fn what_a_validator_refuses_fails_and_long_reasons_are_counted() {
    let dir = with_codec();
    let refuses = "function Decoder() { return {}; } function Validator() { return false; }";
    let fails = format!("function Decoder() {{ throw new Error('{}'); }}", "x".repeat(300));
    for codec in [refuses, &fails] {
        fs::write(dir.path().join("codec.js"), codec).unwrap();
        let input = lines(&[chirpstack(WARM, &json!({"celsius": 23.96})), chirpstack(WARM, &json!({"celsius": 1}))]);
        let (found, code) = report(&mut command(dir.path(), "-", &[]), &input);
        assert_eq!((counts(&found), code), ([0, 0, 2, 0, 0], Some(1)), "{found:#}");
        let reasons: Vec<_> = found["newly_failing_by"].as_object().unwrap().values().collect();
        assert_eq!((reasons.len(), &reasons[0]["uplinks"]), (1, &json!(2)), "{found:#}");
    }
}

// Conformance: Stored uplinks of other networks run through a codec
#[test]
fn a_damaged_line_is_named_and_the_others_are_read() {
    let dir = with_codec();
    let good = chirpstack(WARM, &json!({"celsius": 23.96, "port": 2})).to_string();
    let long = format!("{{\"data\": \"{}\"}}", "A".repeat(5 << 20));
    let not_base64 = good.replace(&STANDARD.encode(WARM), "!");
    let bad_port = good.replace("\"fPort\":2", "\"fPort\":256");
    let bad = ["{\"broken", long.as_str(), &not_base64, &bad_port];
    let input: String = bad.iter().flat_map(|bad| [good.as_str(), "\n", bad, "\n", "\n"]).collect();
    let (found, code) = report(&mut command(dir.path(), "-", &[]), &input);
    assert_eq!((counts(&found), &found["damaged"], code), ([4, 0, 0, 0, 0], &json!(4), Some(2)), "{found:#}");
    for (number, (line, reason)) in
        [(2, "not JSON"), (5, "more than"), (8, "not Base64"), (11, "not a number from 0 to 255")].iter().enumerate()
    {
        let damage = &found["damage"][number];
        assert_eq!(damage["place"], format!("line {line}"), "{damage}");
        assert!(damage["reason"].as_str().unwrap().contains(reason), "{damage}");
    }
}

#[test]
fn a_list_with_an_element_on_each_line_is_read_like_lines() {
    let dir = with_codec();
    let good = chirpstack(WARM, &json!({"celsius": 23.96, "port": 2}));
    let (found, code) = report(&mut command(dir.path(), "-", &[]), &format!("[\n{good},\n{good}\n]\n"));
    assert_eq!((counts(&found), code), ([2, 0, 0, 0, 0], Some(0)), "{found:#}");
}

// Conformance: Stored uplinks of other networks run through a codec
#[test]
fn csv_is_read_as_databases_and_our_own_export_write_it() {
    let dir = with_codec();
    let object = r#""{""celsius"": 23.96, ""port"": 2}""#;
    for (input, arguments, expected) in [
        (
            format!(
                "time,dev_eui,f_port,data,object\n2026-11-28 10:00:00.5+00,{EUI},2,\\x095c,{object}\n\
                 2026-11-28 10:00:00.5+00,{EUI},2,\\x095c,null\n"
            ),
            &[][..],
            [1, 0, 0, 1, 0],
        ),
        (
            format!(
                "id,received,app_id,dev_id,kind,port,payload,outcome,result\n\
                 1,2026-11-28T10:00:00Z,a,d,up,2,CVw=,decoded,{object}\n\
                 2,2026-11-28T10:00:00Z,a,d,up,2,CVw=,failed,\n3,2026-11-28T10:00:00Z,a,d,down/sent,2,,decoded,{{}}\n"
            ),
            &[],
            [1, 0, 0, 1, 0],
        ),
        (
            format!("raw;p;decoded\n095c;2;{object}\n"),
            &["--column", "payload=raw", "--column", "port=p", "--column", "object=decoded", "--encoding", "hex"],
            [1, 0, 0, 0, 0],
        ),
        ("\u{feff}f_port\tfrm_payload\n2\tCVw=\n".to_owned(), &["--format", "csv"], [0, 0, 0, 1, 0]),
    ] {
        let (found, code) = report(&mut command(dir.path(), "-", arguments), &input);
        assert_eq!((counts(&found), code), (expected, Some(0)), "{input}: {found:#}");
    }
}

#[test]
fn a_table_that_cannot_be_understood_is_refused_with_what_to_do() {
    let dir = with_codec();
    for (input, arguments, reason) in [
        ("a,b\n1,2\n", &[][..], "use --column payload=NAME; it has `a`, `b`"),
        ("data,port\n095c,2\n", &[], "use --encoding base64 or --encoding hex"),
        ("data,port\n095c,2\n", &["--column", "port=f_port"], "has no column `f_port`"),
    ] {
        let output = run(&mut command(dir.path(), "-", arguments), input);
        assert!(complaint(&output).contains(reason) && output.status.code() == Some(2), "{input}: {output:?}");
    }
    let endless = format!("data\n\"{}", "0".repeat(5 << 20));
    let output = run(&mut command(dir.path(), "-", &["--encoding", "hex", "--format", "csv"]), &endless);
    assert!(complaint(&output).contains("quotation mark"), "{output:?}");
}

#[test]
fn options_choose_the_uplinks() {
    let dir = with_codec();
    let object = json!({"celsius": 23.96, "port": 2});
    let input = lines(&[chirpstack(WARM, &object), things_stack(WARM, &object), own(WARM, "decoded", &object)]);
    for (arguments, wanted) in [
        (&["--device", EUI][..], 2),
        (&["--device", "METER-1"], 2),
        (&["--device", "Meter 1"], 1),
        (&["--application", "cellar"], 3),
        (&["--since", "2026-11-21T10:00:00Z"], 2),
        (&["--until", "2026-11-21T10:00:00Z"], 1),
        (&["--since", "2026-11-21T00:00:00Z", "--until", "2026-11-22T00:00:00Z"], 1),
    ] {
        let (found, _) = report(&mut command(dir.path(), "-", arguments), &input);
        assert_eq!((found["uplinks"].as_u64(), found["left_out"].as_u64()), (Some(wanted), Some(3 - wanted)));
    }
    let output = run(&mut command(dir.path(), "-", &["--device", "nobody"]), &input);
    assert!(complaint(&output).contains("no such uplinks") && output.status.code() == Some(2), "{output:?}");
}

// Conformance: A replay writes each uplink with both objects, as lines of JSON or as Parquet
#[test]
fn files_have_the_report_as_a_page_and_each_uplink_with_both_objects() {
    let dir = with_codec();
    let hostile = json!({"celsius": "<script>alert(1)</script>\u{1b}[2J"});
    fs::write(dir.path().join("in.jsonl"), lines(&[chirpstack(WARM, &hostile), chirpstack(WARM, &Value::Null)]))
        .unwrap();
    let output = run(&mut command(dir.path(), "in.jsonl", &["--html", "r.html", "--output", "out.jsonl"]), "");
    let text = printed(&output);
    assert!(text.starts_with("2 uplinks: 0 equal, 1 changed") && !text.contains('\u{1b}'), "{text}");
    let page = fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(page.contains("&#60;script&#62;") && !page.contains("<script>"), "{page}");
    let lines = fs::read_to_string(dir.path().join("out.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["verdict"], &lines[0]["new"]["celsius"]), (&json!("changed"), &json!(23.96)));
    assert_eq!((&lines[1]["verdict"], &lines[1]["old"]), (&json!("newly_decoded"), &Value::Null));
    assert_eq!((&lines[1]["payload"], &lines[1]["time"]), (&json!("CVw="), &json!("2026-11-20T10:00:00.5Z")));
}

#[test]
fn a_source_that_is_missing_or_cannot_be_read_has_its_own_exit_code() {
    let dir = with_codec();
    for (from, code) in [("missing.jsonl", 3), ("missing.parquet", 3), (".", 5)] {
        let output = run(&mut command(dir.path(), from, &[]), "");
        assert!(complaint(&output).contains(&format!("cannot read {from}")), "{from}: {output:?}");
        assert_eq!(output.status.code(), Some(code), "{from}");
    }
}

#[test]
fn what_cannot_run_is_refused_before_anything_is_read() {
    let dir = with_codec();
    fs::write(dir.path().join("in.jsonl"), "").unwrap();
    fs::write(dir.path().join("bad.js"), "function decodeUplink( {").unwrap();
    for (from, arguments, reason) in [
        ("in.jsonl", &["--output", "in.jsonl"][..], "named twice"),
        ("in.jsonl", &["--html", "codec.js"], "named twice"),
        ("in.jsonl", &["--sql", "x.sql"], "use it with --from postgres://"),
        ("kafka://host/topic", &[], "there are no sources with `kafka://`"),
        ("in.jsonl", &[], "no such uplinks"),
    ] {
        let output = run(&mut command(dir.path(), from, arguments), "");
        assert!(complaint(&output).contains(reason), "{from} {arguments:?}: {output:?}");
    }
    assert!(!dir.path().join("x.sql").exists());
    let mut command = crate::harness::airlock(dir.path());
    let output = run(command.args(["replay", "--from", "in.jsonl", "--codec", "bad.js"]), "");
    assert!(complaint(&output).contains("cannot be loaded") && output.status.code() == Some(2), "{output:?}");
}
