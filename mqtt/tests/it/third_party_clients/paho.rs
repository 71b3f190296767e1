//! The Python client of Eclipse Paho.

use std::path::Path;

use testing::Python;

use super::printed;
use crate::harness::Harness;

// Conformance: MQTT 3.1, 3.1.1 and 5
// Conformance: The Paho interoperability cases in MQTT 3.1, 3.1
// Conformance: Keep-alive: at most 1200 s, and closed after one and a half
// Conformance: Too large a packet: 0x95; the maximum is announced
// Conformance: Subscriptions: 0x80 or 0x87 outside the application
// Conformance: A client that connects again takes its session over, nobody else does
// Conformance: Every entitled subscriber gets an uplink, once however many of its filters match
#[tokio::test(flavor = "multi_thread")]
async fn the_interoperability_cases_of_paho_pass_in_every_version() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("paho");
    let Some(python) = Python::install(&dir, &["paho-mqtt==2.2.0"]) else { return };
    let harness = Harness::start().await;
    harness.authenticator.grant("app-one", "account.nothing", &[]);
    // Its name must not be that of the package.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/third_party_clients/paho_client.py");
    let mut command = python.command(&script);
    command.env("HOST", harness.host()).env("PORT", harness.port());
    assert!(printed(command).await.ends_with("done\n"));
}
