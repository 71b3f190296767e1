//! `airlock downlink` and `airlock subscribe`, at a running network.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use client::mqtt::MqttClient;
use serde_json::json;
use types::Credential;

use super::CommandLine;
use crate::harness::{airlock, next};

#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_reaches_subscribers() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1"]);
    let key = line.typed(&["applications", "key"]);
    let key = Credential::Key(key.trim().parse().unwrap());
    let app_id = "my-app".parse().unwrap();
    let mut listener = MqttClient::connect(&line.network.mqtt(), &app_id, &key).await.unwrap();
    listener.subscribe("my-app/devices/+/down").await.unwrap();
    line.typed(&["downlink", "dev-1", "01ff", "--fport", "2", "--confirmed"]);
    let (topic, message) = next(&mut listener).await;
    let expected = json!({"port": 2, "confirmed": true, "schedule": "replace", "payload_raw": "Af8="});
    assert_eq!((topic.as_str(), message), ("dev-1/down", expected));
    line.typed(&["downlink", "dev-1", r#"{"led": true}"#, "--json"]);
    let (_, message) = next(&mut listener).await;
    assert_eq!(message, json!({"port": 1, "schedule": "replace", "payload_fields": {"led": true}}));
    // A string of JavaScript that is none of Rust.
    line.typed(&["downlink", "dev-1", r#"{"text": "\ud800"}"#, "--json"]);
    let message = listener.next().await.unwrap();
    let text = String::from_utf8(message.payload.to_vec()).unwrap();
    assert!(text.contains(r#"{"text": "\ud800"}"#), "{text}");
    for (arguments, reason) in
        [(&["0x01"][..], "hexadecimal"), (&["[1]", "--json"], "must be a JSON object"), (&[""], "empty")]
    {
        let (_, error) = line.refused(&[&["downlink", "dev-1"][..], arguments].concat(), "");
        assert!(error.contains(reason), "{error}");
    }
    line.network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribe_shows_messages() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1"]);
    let key = line.typed(&["applications", "key"]);
    // With an access key, no login is needed.
    let elsewhere = tempfile::tempdir().unwrap();
    let mqtt = line.network.mqtt();
    let mut command = airlock(elsewhere.path());
    command.args(["subscribe", "--count", "1", "--mqtt-address", &mqtt]);
    command.args(["--mqtt-username", "my-app", "--mqtt-password", key.trim()]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("Listening to my-app")));
    line.typed(&["devices", "simulate", "dev-1", "01 FF", "--port", "7"]);
    let shown = lines.next().expect("the uplink is shown");
    assert!(shown.contains("dev-1") && shown.contains("port 7") && shown.contains("01FF"), "{shown}");
    assert!(child.wait().unwrap().success());
    line.network.stack.stop().await;
}
