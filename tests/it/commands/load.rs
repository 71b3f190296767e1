//! `airlock load`, at a running network.

use std::fs;

use serde_json::Value;

use super::CommandLine;
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
    },
    harness::{complaint, printed},
};

/// The slowest machine delivers an uplink in this time.
const TIMEOUT: [&str; 2] = ["--timeout", "60"];

impl CommandLine {
    fn load(&self, options: &[&str]) -> std::process::Output {
        self.network.type_command(&[&["load", "-o", "json"], options].concat(), "")
    }
}

fn figures(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

// Conformance: load
#[tokio::test(flavor = "multi_thread")]
async fn every_uplink_of_a_load_is_delivered_once() {
    let line = CommandLine::start().await;
    line.run_with_input(&["applications", "pf", "set", "decoder"], "function Decoder(b) { return { n: b.length }; }");
    let output = line.load(&[&["--devices", "3", "--rate", "30", "--duration", "2"], &TIMEOUT[..]].concat());
    printed(&output);
    let figures = figures(&output);
    let sent = figures["sent"].as_u64().unwrap();
    assert!(sent >= 3, "{figures}");
    assert_eq!(figures["delivered"], sent, "{figures}");
    for name in ["lost", "late", "duplicates", "failed_functions", "refused"] {
        assert_eq!(figures[name], 0, "{name}: {figures}");
    }
    let latency = |name: &str| figures[name].as_f64().unwrap();
    assert!(latency("latency_p50_ms") > 0.0 && latency("latency_p50_ms") <= latency("latency_max_ms"), "{figures}");
    assert!(line.typed(&["devices", "list"]).contains("no devices"), "its devices are deleted");
    line.network.stack.stop().await;
}

// Conformance: load
#[tokio::test(flavor = "multi_thread")]
async fn a_load_tells_what_failed_and_what_was_refused() {
    let line = CommandLine::start().await;
    let one = ["--devices", "1", "--rate", "1", "--duration", "1"];
    line.run_with_input(&["applications", "pf", "set", "decoder"], "function Decoder(b) { throw new Error('no'); }");
    let output = line.load(&[&one[..], &TIMEOUT].concat());
    printed(&output);
    assert_eq!((&figures(&output)["failed_functions"], &figures(&output)["delivered"]), (&1.into(), &1.into()));

    line.run_with_input(&["applications", "pf", "set", "decoder"], "function Decoder(b) { return {}; }");
    line.run_with_input(&["applications", "pf", "set", "validator"], "function Validator() { return false; }");
    let output = line.load(&[&one[..], &TIMEOUT].concat());
    assert!(complaint(&output).contains("1 uplinks were refused") && complaint(&output).contains("validator"));
    assert_eq!((&figures(&output)["sent"], &figures(&output)["refused"]), (&0.into(), &1.into()));
    assert!(line.typed(&["devices", "list"]).contains("no devices"));
    line.network.stack.stop().await;
}

// Conformance: load
#[tokio::test(flavor = "multi_thread")]
async fn a_decoder_is_tested_and_a_report_written() {
    let line = CommandLine::start().await;
    let own = "function Decoder(b) { return { own: true }; }";
    line.run_with_input(&["applications", "pf", "set", "decoder"], own);
    let dir = line.network.dir.path();
    let files = [
        ("decoder.js", "function Decoder(b) { throw new Error('under test'); }"),
        ("bad.js", "function Decoder(b) { return (; }"),
    ];
    files.iter().for_each(|(name, text)| fs::write(dir.join(name), text).unwrap());
    let one = ["--devices", "1", "--rate", "1", "--duration", "1", "--decoder"];
    let output = line.load(&[&one[..], &["bad.js"], &TIMEOUT].concat());
    assert!(complaint(&output).contains("nothing was changed"), "{}", complaint(&output));
    let reports = ["--report", "load.html", "--report", "load.md", "--report", "load.json"];
    let output = line.load(&[&one[..], &["decoder.js"], &TIMEOUT, &reports].concat());
    printed(&output);
    assert_eq!(figures(&output)["failed_functions"], 1);
    assert!(line.typed(&["applications", "pf"]).contains(own), "its own functions are put back");

    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let json: Value = serde_json::from_str(&read("load.json")).unwrap();
    assert_eq!(json, figures(&output));
    let text = read("load.md");
    assert!(text.starts_with("# Load of my-app\n") && text.contains("| Delivered | 1 |\n"), "{text}");
    let ranges = text.split_once("| Latency, ms |").unwrap().1;
    assert!(ranges.trim_end().ends_with(" | 1 |"), "{text}");
    for (name, look) in [("load", DESK), ("load-phone", Look { width: 360, dark: true, ..DESK })] {
        let Some(browser) = Browser::start(&format!("file://{}/", dir.display()), name, look).await else { break };
        browser.look_at_report("load.html", "Load of my-app").await;
    }
    line.network.stack.stop().await;
}
