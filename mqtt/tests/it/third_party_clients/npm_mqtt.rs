//! The npm package `mqtt`, over WebSocket as in browsers.

use std::path::Path;

use mqtt::BrokerSettings;
use testing::Node;

use super::printed;
use crate::harness::{Harness, settings};

// Conformance: MQTT 3.1, 3.1.1 and 5
#[tokio::test(flavor = "multi_thread")]
async fn the_npm_package_mqtt_works_over_websocket() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm_mqtt");
    let Some(node) = Node::install(&dir, &["mqtt@5.16.0"]) else { return };
    let settings = BrokerSettings { websocket_listen: "127.0.0.1:0".to_owned(), ..settings() };
    let harness = Harness::start_with(settings).await;
    harness.authenticator.grant("app-one", "account.nothing", &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/third_party_clients/npm_mqtt.js");
    let mut command = node.command(&script);
    command.env("URL", format!("ws://{}/mqtt", harness.broker.websocket_address().unwrap()));
    assert!(printed(command).await.ends_with("done\n"));
}
