//! Third-party clients, unmodified: here `mosquitto_sub` and `mosquitto_pub`, plain and over TLS.

mod npm_mqtt;
mod paho;

use std::{process, process::Stdio, sync::Arc};

use mqtt::BrokerSettings;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
};
use tokio_rustls::rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};

use crate::harness::{
    FakeAuthenticator, Harness, READ, eventually, publish_up,
    raw_client::{Login, RawClient},
    settings, start_with_tls,
};

/// Starts `mosquitto_sub`; returns its output as lines, unbuffered.
fn subscribe(arguments: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new("stdbuf")
        .args(["-oL", "mosquitto_sub"])
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("install coreutils and mosquitto-clients");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// Returns the output of a program that must succeed; the broker goes on while it runs.
async fn printed(mut command: process::Command) -> String {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

async fn line_with(lines: &mut Lines<BufReader<ChildStdout>>, text: &str) -> String {
    eventually(text, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(text) {
                return line;
            }
        }
        panic!("it ended without printing {text}")
    })
    .await
}

// Conformance: MQTT 3.1, 3.1.1 and 5
#[tokio::test]
async fn mosquitto_sub_receives_its_application_by_any_wildcard() {
    if !testing::programs_may_run() {
        return;
    }
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    for version in ["mqttv31", "mqttv311", "mqttv5"] {
        for filter in ["+/devices/+/up", "#", "app-one/devices/dev/up"] {
            let (host, port) = (harness.host(), harness.port());
            let (mut child, mut lines) = subscribe(&format!(
                "-h {host} -p {port} -V {version} -u app-one -P account.read -t {filter} -C 1 -v -d"
            ));
            line_with(&mut lines, "Subscribed").await;
            publish_up(&mut handler, "app-two", "foreign").await;
            publish_up(&mut handler, "app-one", "own").await;
            assert_eq!(
                line_with(&mut lines, "devices/dev/up ").await,
                "app-one/devices/dev/up own",
                "{version}, {filter}"
            );
            assert!(child.wait().await.unwrap().success());
        }
    }
}

#[tokio::test]
async fn mosquitto_sub_continues_its_session_where_it_left() {
    if !testing::programs_may_run() {
        return;
    }
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    for version in ["mqttv31", "mqttv311", "mqttv5"] {
        let arguments = |count: usize| {
            let (host, port) = (harness.host(), harness.port());
            // With MQTT 5, the session would end with the connection otherwise.
            let expiry = if version == "mqttv5" { "-x 600" } else { "" };
            format!(
                "-h {host} -p {port} -V {version} -u app-one -P account.read -t +/devices/+/up -q 1 -c -i kept-{version} \
                 -C {count} -d {expiry}"
            )
        };
        let (mut child, mut lines) = subscribe(&arguments(1));
        line_with(&mut lines, "Subscribed").await;
        publish_up(&mut handler, "app-one", "first").await;
        line_with(&mut lines, "first").await;
        assert!(child.wait().await.unwrap().success());
        for number in 0..3 {
            publish_up(&mut handler, "app-one", &format!("away {number}")).await;
        }
        let (mut child, mut lines) = subscribe(&arguments(3));
        for number in 0..3 {
            line_with(&mut lines, &format!("away {number}")).await;
        }
        assert!(child.wait().await.unwrap().success());
    }
}

// Conformance: The MQTT client receives messages and sends downlinks
#[tokio::test]
async fn mosquitto_pub_sends_a_downlink_and_reports_a_wrong_key() {
    if !testing::programs_may_run() {
        return;
    }
    let harness = Harness::start().await;
    let mut observer = RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    observer.subscribe("#").await;
    let (host, port) = (harness.host(), harness.port());
    let publish = |version, qos, key| {
        let child = Command::new("mosquitto_pub")
            .args(["-h", &host, "-p", &port, "-V", version, "-u", "app-one", "-P", key, "-q", qos])
            .args(["-t", "app-one/devices/dev/down", "-m", "down"])
            .output();
        async { eventually("mosquitto_pub", child).await.expect("install mosquitto-clients") }
    };
    for version in ["mqttv31", "mqttv311", "mqttv5"] {
        for qos in ["0", "1", "2"] {
            let ran = publish(version, qos, "account.write").await;
            assert!(ran.status.success(), "{ran:?}");
            assert_eq!(observer.next().await.1, "down");
        }
        let ran = publish(version, "1", "account.wrong").await;
        assert!(!ran.status.success());
        let said = String::from_utf8_lossy(&ran.stderr).to_lowercase();
        assert!(said.contains("bad user name or password"), "{said}");
    }
}

#[tokio::test]
async fn acknowledges_and_drops_a_forbidden_downlink() {
    if !testing::programs_may_run() {
        return;
    }
    let harness = Harness::start().await;
    let mut observer = RawClient::connect(harness.broker.address(), &Login::new(4, "app-two", "account.both")).await;
    observer.subscribe("#").await;
    let (host, port) = (harness.host(), harness.port());
    let ran = Command::new("mosquitto_pub")
        .args(["-h", &host, "-p", &port, "-u", "app-one", "-P", "account.both", "-q", "1"])
        .args(["-t", "app-two/devices/dev/down", "-m", "foreign"])
        .output();
    // MQTT 3.1.1 cannot refuse a PUBLISH, so it is acknowledged.
    assert!(eventually("mosquitto_pub", ran).await.unwrap().status.success());
    observer.publish("app-two/devices/dev/down", "own").await;
    assert_eq!(observer.next().await.1, "own");
}

#[tokio::test]
async fn serves_tls_while_other_clients_never_finish_the_handshake() {
    if !testing::programs_may_run() {
        return;
    }
    let (certificate, config) = tls();
    let keys = FakeAuthenticator::default();
    keys.grant("app-one", "account.read", &[READ]);
    let settings = BrokerSettings { tls_listen: "127.0.0.1:0".to_owned(), ..settings() };
    let broker = start_with_tls(&settings, config, keys).await;
    let address = broker.tls_address().unwrap();
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(RawClient::open(address, 4).await);
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    std::fs::write(&file, certificate).unwrap();
    let port = address.port().to_string();
    let (mut child, mut lines) =
        subscribe(&format!("-h localhost -p {port} --cafile {} -u app-one -P account.read -t # -d -E", file.display()));
    line_with(&mut lines, "Subscribed").await;
    assert!(child.wait().await.unwrap().success());
}

// Conformance: TLS 1.0 and 1.1: refused
#[tokio::test]
async fn refuses_versions_of_tls_that_are_not_safe() {
    let settings = BrokerSettings { tls_listen: "127.0.0.1:0".to_owned(), ..settings() };
    let broker = start_with_tls(&settings, tls().1, FakeAuthenticator::default()).await;
    for (minor, what) in [(1, "TLS 1.0"), (2, "TLS 1.1")] {
        let mut client = TcpStream::connect(broker.tls_address().unwrap()).await.unwrap();
        // A hello with one cipher suite, one curve and one kind of signature, which all go with TLS 1.2.
        let extensions = [0, 16, 0, 10, 0, 4, 0, 2, 0, 0x17, 0, 13, 0, 4, 0, 2, 4, 3];
        let body = [&[3, minor][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2b, 1, 0], &extensions].concat();
        let hello = [&[1, 0, 0, u8::try_from(body.len()).unwrap()], &body[..]].concat();
        client.write_all(&[&[22, 3, 1, 0, u8::try_from(hello.len()).unwrap()], &hello[..]].concat()).await.unwrap();
        let mut alert = Vec::new();
        eventually("the alert", client.read_to_end(&mut alert)).await.unwrap();
        // A fatal alert about the version.
        assert_eq!((alert[0], &alert[5..]), (21, &[2, 70][..]), "{what}");
    }
}

/// A self-signed certificate for localhost, as PEM and as a server uses it.
fn tls() -> (String, ServerConfig) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    (signed.cert.pem(), config)
}
