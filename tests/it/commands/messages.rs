//! `airlock downlink` and `airlock subscribe`, at a running network.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::json;
use testing::MqttClient;

use super::CommandLine;
use crate::harness::{airlock, complaint, next, run};

// Conformance: The MQTT client: messages, downlinks, TLS
// Conformance: downlink, subscribe
#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_reaches_subscribers() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1"]);
    let key = line.typed(&["applications", "key"]);
    let mut listener = MqttClient::connect_with(&line.network.mqtt(), "my-app", key.trim()).await;
    listener.subscribe("my-app/devices/+/events/down/#").await;
    let said = line.typed(&["downlink", "dev-1", "01ff", "--fport", "2", "--confirmed"]);
    assert!(said.contains("01FF on port 2"), "{said}");
    let (topic, event) = next(&mut listener).await;
    let expected = json!({"port": 2, "confirmed": true, "payload_raw": "Af8="});
    assert_eq!((topic.as_str(), &event["message"]), ("dev-1/events/down/scheduled", &expected));
    let (_, error) = line.refused(&["downlink", "dev-1", r#"{"led": true}"#, "--json"], "");
    assert!(error.contains("converts none"), "{error}");
    let (_, error) = line.refused(&["downlink", "dev-2", "01"], "");
    assert!(error.contains("dev-2 not found"), "{error}");
    // A string of JavaScript that is none of Rust.
    let encoder = "function Encoder(object) { return [object.text.charCodeAt(0) >> 8]; }";
    line.run_with_input(&["applications", "pf", "set", "encoder", "--skip-test"], encoder);
    let said = line.typed(&["downlink", "dev-1", r#"{"text": "\ud800"}"#, "--json", "--schedule", "last"]);
    assert!(said.contains("D8 on port 1"), "{said}");
    let listed = line.typed(&["devices", "downlinks", "dev-1"]);
    assert!(listed.contains("01FF") && listed.contains("D8"), "{listed}");
    let clear = ["devices", "downlinks", "dev-1", "--clear"];
    assert!(line.refused(&clear, "no\n").1.contains("use --yes"));
    assert!(line.typed(&["devices", "downlinks", "dev-1"]).contains("01FF"));
    line.typed(&[&clear[..], &["--yes"]].concat());
    assert!(line.typed(&["devices", "downlinks", "dev-1"]).contains("No downlinks wait"));
    for (arguments, reason) in
        [(&["0x01"][..], "hexadecimal"), (&["[1]", "--json"], "must be a JSON object"), (&[""], "empty")]
    {
        let (_, error) = line.refused(&[&["downlink", "dev-1"][..], arguments].concat(), "");
        assert!(error.contains(reason), "{error}");
    }
    line.network.stack.stop().await;
}

// Conformance: downlink, subscribe
#[test]
fn subscribe_refuses_a_format_without_columns_at_once() {
    let dir = tempfile::tempdir().unwrap();
    // There is no server, so it must not try to connect first.
    let mut command = airlock(dir.path());
    command.args(["subscribe", "--output", "csv", "--mqtt-address", "127.0.0.1:1", "--mqtt-username", "my-app"]);
    let error = complaint(&run(command.args(["--mqtt-password", "issuer.key"]), ""));
    assert!(error.contains("use `--output jsonl`"), "{error}");
}

// Conformance: downlink, subscribe
#[tokio::test(flavor = "multi_thread")]
async fn subscribe_shows_messages() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1"]);
    let key = line.typed(&["applications", "key"]);
    // With an access key, no login is needed.
    let elsewhere = tempfile::tempdir().unwrap();
    let mqtt = line.network.mqtt();
    let mut command = airlock(elsewhere.path());
    command.args(["subscribe", "--count", "2", "--mqtt-address", &mqtt]);
    command.args(["--mqtt-username", "my-app", "--mqtt-password", key.trim()]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("Listening to my-app")));
    line.typed(&["devices", "simulate", "dev-1", "01 FF", "--port", "7"]);
    let shown = lines.next().expect("the uplink is shown");
    assert!(shown.contains("dev-1") && shown.contains("port 7") && shown.contains("01FF"), "{shown}");
    line.typed(&["downlink", "dev-1", "01ff", "--fport", "2"]);
    assert!(lines.next().expect("the event is shown").ends_with("downlink queued: 01FF on port 2"));
    assert!(child.wait().unwrap().success());
    line.network.stack.stop().await;
}
