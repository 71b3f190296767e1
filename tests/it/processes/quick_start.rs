//! The first decoder of docs/getting-started.md, command by command, with `mosquitto_sub` as subscriber.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::harness::{Network, PASSWORD, complaint, printed};

const DECODER: &str = "function Decoder(bytes, port) {
  return { temperature: (bytes[0] << 8 | bytes[1]) / 100, port: port };
}
";

// Conformance: The handler registers applications, stores functions and devices
// Conformance: user: login with a code or a password, logout, register
// Conformance: applications: add, list, info, select, config, register, unregister, delete
// Conformance: applications pf, pf set
// Conformance: devices: list, info, register, set, personalize, simulate, delete
#[tokio::test(flavor = "multi_thread")]
async fn the_quick_start_works() {
    let network = Network::start().await;
    let typed = |arguments: &[&str]| printed(&network.type_command(arguments, ""));
    let password = |arguments: &[&str]| printed(&network.type_command(arguments, PASSWORD));

    password(&["user", "register", "alice", "alice@example.com", "--password-stdin"]);
    let hello = password(&["user", "login", "alice", "--password-stdin"]);
    assert!(hello.contains("alice (alice@example.com)"), "{hello}");
    typed(&["applications", "add", "my-first-app", "My first application"]);
    std::fs::write(network.dir.path().join("decoder.js"), DECODER).unwrap();
    typed(&["applications", "pf", "set", "decoder", "decoder.js"]);
    typed(&["devices", "register", "my-first-device"]);
    let key = typed(&["applications", "key"]);

    let subscriber = Subscriber::listen(&network, "my-first-app", key.trim());
    typed(&["devices", "simulate", "my-first-device", "095C"]);
    let uplink = subscriber.uplink();
    assert_eq!(uplink["payload_fields"], serde_json::json!({"temperature": 23.96, "port": 1}));
    assert_eq!(uplink["payload_raw"], "CVw=");

    assert!(typed(&["applications", "list"]).contains("My first application"));
    assert!(typed(&["applications", "info"]).contains("default key"));
    assert!(typed(&["applications", "pf"]).contains("bytes[0] << 8"));
    assert!(typed(&["devices", "list"]).contains("my-first-device"));
    assert!(typed(&["devices", "info", "my-first-device"]).contains("32BitFCnt"));
    assert!(typed(&["user"]).contains("alice@example.com"));
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_to_do_next() {
    let network = Network::start().await;
    let refused = |arguments: &[&str], input: &str| {
        let output = network.type_command(arguments, input);
        (output.status.code(), complaint(&output))
    };
    let (_, error) = refused(&["applications", "list"], "");
    assert!(error.contains("airlock user login"), "{error}");
    let (code, error) = refused(&["user", "login", "nobody", "--password-stdin"], "wrong password");
    assert_eq!(code, Some(4), "{error}");
    printed(&network.type_command(&["user", "register", "bob", "bob@example.com", "--password-stdin"], PASSWORD));
    printed(&network.type_command(&["user", "login", "bob", "--password-stdin"], PASSWORD));
    let (_, error) = refused(&["devices", "list"], "");
    assert!(error.contains("airlock applications select"), "{error}");
    let (code, error) = refused(&["applications", "add", "Not An Id", "x"], "");
    assert!(code == Some(2) && error.contains("lowercase letters"), "{error}");
    printed(&network.type_command(&["applications", "add", "bobs-app", "x"], ""));
    let (code, error) = refused(&["devices", "simulate", "no-such-device", "00"], "");
    assert!(code == Some(3) && error.contains("not found"), "{code:?} {error}");
    let (_, error) = refused(&["applications", "pf", "set", "decoder"], "function Decoder(bytes) {\n\n  return (;\n}");
    assert!(error.contains("line 3") && error.contains("\n3 |   return (;\n  |"), "{error}");
    network.stack.stop().await;
}

/// `mosquitto_sub`, waiting for one uplink.
struct Subscriber {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Subscriber {
    /// Starts `mosquitto_sub`; returns when the broker has granted the subscription.
    fn listen(network: &Network, app_id: &str, key: &str) -> Self {
        let port = network.stack.mqtt_address().unwrap().port().to_string();
        // Without stdbuf it would buffer its output until it ends.
        let mut child = Command::new("stdbuf")
            .args([
                "-oL",
                "mosquitto_sub",
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-t",
                "+/devices/+/up",
                "-C",
                "1",
                "-d",
                "-u",
                app_id,
                "-P",
                key,
            ])
            .stdout(Stdio::piped())
            .spawn()
            .expect("mosquitto_sub is installed: it is in the package mosquitto-clients");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let granted = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("Subscribed"));
        assert!(granted, "mosquitto_sub was not let in");
        Self { child, lines }
    }

    fn uplink(mut self) -> serde_json::Value {
        let uplink = self.lines.by_ref().map_while(Result::ok).find(|line| line.starts_with('{'));
        self.child.wait().unwrap();
        serde_json::from_str(&uplink.expect("an uplink arrives")).unwrap()
    }
}
