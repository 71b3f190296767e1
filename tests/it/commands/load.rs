//! `airlock load`, at a running network.

use serde_json::Value;

use super::CommandLine;
use crate::harness::{complaint, printed};

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
