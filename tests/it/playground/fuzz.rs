//! Random payloads in the page: those that `airlock functions fuzz` finds, each to be added to the payloads.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::{
    has_node,
    page::{ask, open, paste, settle, shows},
};
use crate::{
    browser::{DESK, driver::Look},
    harness::{airlock, run},
};

/// Throws in three ways: two are short payloads, the third one is rare.
const THROWS: &str = "function decodeUplink(input) {\n  var b = input.bytes, none;\n  if (b[0] === 0x7f) return { data: { x: b[9].toFixed(2) } };\n  \
                      if (b.length === 5) none.x = 1;\n  if (b.length > 20 && b[2] > 9) throw new Error('long');\n  return { data: { n: b.length } };\n}\n";

/// Numbers that JSON lacks, other results each time, and downlinks that do not survive encoding.
const FAULTY: &str = "function decodeUplink(input) {\n  var b = input.bytes;\n  return { data: { ratio: b[1] / b[2], luck: b[0] > 9 ? Math.random() : 0 } };\n}\n\
                      function decodeDownlink(input) { return { data: { level: input.bytes[0] } }; }\n\
                      function encodeDownlink(input) { return { fPort: 2, bytes: [input.data.level >> 1] }; }\n";

// Conformance: playground
#[test]
fn the_page_finds_what_functions_fuzz_finds() {
    if !has_node() {
        return;
    }
    for text in [THROWS, FAULTY] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("decoder.js");
        fs::write(&file, text).unwrap();
        fs::write(dir.path().join("decoder.test.yaml"), "examples:\n  - {bytes: '01020304', port: 1}\n").unwrap();
        let fuzz = ["functions", "fuzz", file.to_str().unwrap(), "--count", "3000", "--format", "json"];
        let output = run(airlock(dir.path()).args(fuzz), "");
        let told = String::from_utf8(output.stdout).unwrap();
        let uplink = json!({"line": 1, "payload": [1, 2, 3, 4], "port": 1, "timeMs": 1_767_225_600_000_i64});
        let codec = json!({"text": text, "dialect": null, "uplinks": [uplink]});
        let question = json!({"fuzz": {"codec": codec, "seed": 1, "count": 3000}});
        let input = json!({"limits": runtime::Limits::default(), "question": question});
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut node = Command::new("node");
        node.arg(root.join("tests/it/playground/fuzz.mjs")).arg(root);
        let output = run(&mut node, &input.to_string());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut server: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
        let mut page: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(server["findings"].as_array().unwrap().len() >= 3, "{told}");
        for report in [&mut server, &mut page] {
            report.as_object_mut().unwrap().retain(|name, _| name != "id" && name != "file");
        }
        assert_eq!(server, page);
    }
}

async fn fuzz_in(name: &'static str, look: Look) {
    let Some((_playground, browser, _dir)) = open(name, look).await else { return };
    paste(&browser, "text", THROWS).await;
    paste(&browser, "payloads", "01020304").await;
    shows(&browser, "outcome", "n").await;
    settle(&browser).await;
    browser.click("#fuzz-details summary").await;
    browser.click("#fuzz-run").await;
    shows(&browser, "fuzz", "10,000 payloads: 3 different ways to fail").await;
    browser.look("playground-fuzz").await;
    let hex = ask(&browser, "return document.querySelector('.fuzzed code').textContent;").await;
    browser.click(".fuzzed li p button").await;
    shows(&browser, "verdict", "Failed").await;
    assert_eq!(browser.value("#payloads").await, format!("01020304\n1: {}", hex.as_str().unwrap()));
    let base64 = "const notation = document.getElementById('notation'); notation.value = 'base64'; \
                  document.getElementById('payloads').value = 'AQIDBA=='; \
                  notation.dispatchEvent(new Event('input', { bubbles: true }));";
    ask(&browser, base64).await;
    shows(&browser, "verdict", "Decoded").await;
    settle(&browser).await;
    browser.click(".fuzzed li p button").await;
    shows(&browser, "verdict", "Failed").await;
    let shown = "return document.querySelectorAll('.fuzzed li').length;";
    assert_eq!(ask(&browser, shown).await, 3);
    paste(&browser, "text", &format!("{THROWS}\n")).await;
    assert_eq!(ask(&browser, shown).await, 0, "they are failures of another source");
}

// Conformance: playground
#[tokio::test]
async fn payloads_that_fail_are_found_and_added() {
    fuzz_in("playground-fuzz-desk", Look { width: 1280, ..DESK }).await;
    fuzz_in("playground-fuzz-phone", Look { width: 375, dark: true, ..DESK }).await;
}

// Conformance: playground
#[tokio::test]
async fn a_decoder_that_does_not_end_is_stopped_or_ends_early() {
    let Some((_playground, browser, _dir)) = open("playground-fuzz-stopped", DESK).await else { return };
    paste(&browser, "text", "function Decoder(bytes) {\n  while (bytes[0] !== 1);\n  return {};\n}").await;
    settle(&browser).await;
    browser.click("#fuzz-details summary").await;
    browser.click("#fuzz-run").await;
    shows(&browser, "fuzz", "of the functions…").await;
    shows(&browser, "fuzz-run", "Stop").await;
    browser.click("#fuzz-run").await;
    shows(&browser, "fuzz", "Stopped.").await;
    paste(&browser, "payloads", "01").await;
    shows(&browser, "verdict", "Decoded").await;
}
