//! Examples that the page saves: `airlock functions test` reads them in every layout, and they pass.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use super::{
    has_node,
    page::{ask, open, paste, settle, shows},
};
use crate::{
    browser::{DESK, driver::Look},
    harness::{airlock, run},
};

const TS013: &str = "function decodeUplink(input) {\n  if (input.fPort === 9) throw new Error('no');\n  \
                     if (input.bytes.length === 0) return { errors: ['short'] };\n  \
                     return { data: { n: input.bytes[0], text: '\u{e9}: \"#\", {', at: Date.now() }, warnings: [] };\n}\n\
                     function encodeDownlink(input) { return { fPort: 2, bytes: [input.data.n] }; }\n";
const V2: &str = "function Decoder(bytes, port) {\n  if (port === 9) throw new Error('no');\n  \
                  return { n: bytes[0], list: [1.5, null, { 'a b': true }] };\n}\n\
                  function Encoder(fields, port) { return [fields.n, port]; }\n";
/// Text that YAML cannot have, and a member that Milesight's layout knows in all dialects.
const AWKWARD: &str = "function Decoder(bytes, port) {\n  if (port === 85) return { data: { n: bytes[0] } };\n  \
                       return port === 9 ? { '<<': 1 } : { half: '\\ud800' };\n}\n";
/// The number that each layout can state of four uplinks (one throws, another has a time) and a downlink.
const LAYOUTS: [(&str, u32); 5] = [("own", 5), ("repository", 2), ("profile", 2), ("package", 2), ("milesight", 1)];
/// The same of the awkward ones, for which there is no encoder.
const AWKWARD_LAYOUTS: [(&str, u32); 5] =
    [("own", 1), ("repository", 1), ("profile", 3), ("package", 3), ("milesight", 1)];

// Conformance: playground
#[test]
fn examples_of_the_page_pass_in_every_layout() {
    if !has_node() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let codecs = [
        ("meter.js", TS013, LAYOUTS),
        ("two words.mjs", V2, LAYOUTS),
        ("m\u{e8}tre-decoder.txt", AWKWARD, AWKWARD_LAYOUTS),
    ];
    for (name, text, layouts) in codecs {
        let dir = tempfile::tempdir().unwrap();
        let messages = json!([
            {"payload": [1], "port": 85, "timeMs": null},
            {"payload": [], "port": 1, "timeMs": null},
            {"payload": [2], "port": 9, "timeMs": null},
            {"payload": [3], "port": 1, "timeMs": 1_767_323_045_000_i64},
        ]);
        let (limits, downlink) = (runtime::Limits::default(), json!({"fields": "{\"n\": 7}", "port": 3}));
        let names = layouts.map(|(layout, _)| layout);
        let input = json!({
            "limits": limits, "text": text, "name": name, "layouts": names, "messages": messages, "downlink": downlink,
        });
        let mut node = Command::new("node");
        node.arg(root.join("tests/it/playground/examples.mjs")).arg(root).arg(dir.path());
        let output = run(&mut node, &input.to_string());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for (layout, passed) in layouts {
            let output = run(airlock(dir.path()).args(["functions", "test", layout, "--format", "json"]), "");
            let told = String::from_utf8(output.stdout).unwrap();
            let totals: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
            assert_eq!(totals["passed"], passed, "{layout}: {told}");
            assert_eq!((&totals["failed"], &totals["problems"]), (&json!(0), &json!([])), "{layout}: {told}");
        }
    }
}

async fn save_in(name: &'static str, look: Look) {
    let Some((_playground, browser, _dir)) = open(name, look).await else { return };
    browser.click("#examples-details summary").await;
    browser.click("#examples-save").await;
    shows(&browser, "examples", ".test.yaml with 3 examples").await;
    ask(&browser, "document.getElementById('layout').value = 'package';").await;
    browser.click("#examples-save").await;
    shows(&browser, "examples", ".examples.json with 1 example.").await;
    shows(&browser, "examples", "leaves out 2").await;
    browser.look("playground-examples").await;
    let ci = "const [done] = arguments; fetch(document.querySelector('#examples a').href).then((got) => got.text()).then(done);";
    let ci = browser.client.execute_async(ci, vec![]).await.unwrap();
    assert!(ci.as_str().unwrap().contains("paths: ."), "{ci}");
}

// Conformance: playground
#[tokio::test]
async fn examples_are_saved_in_a_layout_that_is_chosen() {
    save_in("playground-examples-desk", Look { width: 1280, ..DESK }).await;
    save_in("playground-examples-phone", Look { width: 375, dark: true, ..DESK }).await;
}

// Conformance: playground
#[tokio::test]
async fn payloads_beyond_the_limit_of_examples_are_counted() {
    let Some((_playground, browser, _dir)) = open("playground-examples-many", DESK).await else { return };
    paste(&browser, "payloads", &"010203\n".repeat(1024)).await;
    settle(&browser).await;
    browser.click("#examples-details summary").await;
    browser.click("#examples-save").await;
    shows(&browser, "examples", "with 1,024 examples").await;
    shows(&browser, "examples", "The last 1 payload did not run").await;
}
