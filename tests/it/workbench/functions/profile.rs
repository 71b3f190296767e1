//! `airlock functions profile`: the fuel of a live message, by line and by function.

use std::fs;

use tempfile::TempDir;

use crate::harness::{airlock, complaint, printed, run};

const CODEC: &str = "function sum(bytes) {
  var n = 0;
  for (var i = 0; i < bytes.length; i++) {
    n += bytes[i];
  }
  return n;
}

function Decoder(bytes, port) {
  if (port === 9) {
    return { never: true };
  }
  return { n: sum(bytes), less: \"<\" };
}
";

fn dir_with(file: &str, script: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(file), script).unwrap();
    dir
}

// Conformance: functions profile
#[test]
fn profiles_a_message_line_by_line() {
    let dir = dir_with("sum.js", CODEC);
    let message = ["sum.js", "--hex", "01020304"];
    let command = |name: &str, more: &[&str]| {
        let mut command = airlock(dir.path());
        command.current_dir(dir.path()).args(["functions", name]).args(message).args(more);
        run(&mut command, "")
    };
    let live = printed(&command("run", &[]));
    let fuel = live.rsplit("fuel ").next().unwrap().trim().to_owned();

    let listing = printed(&command("profile", &["--svg", "flame.svg", "--speedscope", "sum.json"]));
    let line =
        |part: &str| listing.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part} in {listing}"));
    assert!(line("in total").trim_start().starts_with(&format!("{fuel} ")), "{fuel}: {listing}");
    let columns = |part: &str| line(part).split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(columns("4 |     n += bytes[i];")[2], "4", "{listing}");
    assert!(line("11 |").trim_start().starts_with('-'), "{listing}");
    assert!(listing.contains("of 7 lines and") && listing.contains("branches ran"), "{listing}");
    assert!(line(" sum (decoder:").ends_with(')') && line(" Decoder (decoder:").ends_with(')'));

    let flame = fs::read_to_string(dir.path().join("flame.svg")).unwrap();
    assert!(flame.starts_with("<svg") && flame.ends_with("</svg>\n") && flame.contains("sum (decoder:"), "{flame}");
    let speedscope: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("sum.json")).unwrap()).unwrap();
    let profile = &speedscope["profiles"][0];
    let weights: u64 = profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap()).sum();
    assert_eq!((weights.to_string(), profile["endValue"].to_string()), (fuel.clone(), fuel.clone()));

    let svg = printed(&command("profile", &["--svg", "-"]));
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "{svg}");
    let mixed = complaint(&command("profile", &["--svg", "-", "--speedscope", "-"]));
    assert!(mixed.contains("name a file for one of them"), "{mixed}");
    let report: serde_json::Value = serde_json::from_str(&printed(&command("profile", &["--json"]))).unwrap();
    let lines = report["sources"][0]["lines"].as_array().unwrap();
    let of_lines: u64 = lines.iter().map(|line| line["fuel"].as_u64().unwrap()).sum();
    assert_eq!((of_lines + report["outside"].as_u64().unwrap()).to_string(), fuel);
    assert_eq!(report["sources"][0]["coverage"]["missed_lines"], serde_json::json!([11]));
    assert_eq!(report["sources"][0]["coverage"]["missed_branches"], serde_json::json!([10]));
}

// Conformance: functions profile
#[test]
fn a_failing_function_has_a_profile_and_an_error() {
    let dir = dir_with("fails.js", "function Decoder(b) {\n  var n = 0;\n  return nowhere;\n}");
    let mut command = airlock(dir.path());
    let output = run(command.current_dir(dir.path()).args(["functions", "profile", "fails.js", "--hex", "00"]), "");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(out.contains("3 |   return nowhere;") && out.contains("in total"), "{out}");
    assert!(complaint(&output).contains("line 3, column 10"));
}
