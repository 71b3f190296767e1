//! Programs that know nothing of us: `mosquitto_sub` and `mosquitto_pub`, plain and over TLS.

use std::{process::Stdio, sync::Arc};

use handler::broker::{Broker, Settings};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};
use tokio_rustls::rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};

use crate::{
    peer::{Login, Peer},
    stage::{Keys, READS, Stage, publish_up, settings, soon},
};

/// A program of the package `mosquitto-clients`, its output line by line as it comes.
fn stranger(program: &str, arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new("stdbuf")
        .args(["-oL", program])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("install coreutils and mosquitto-clients");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

async fn line_with(lines: &mut Lines<BufReader<ChildStdout>>, text: &str) -> String {
    soon(text, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(text) {
                return line;
            }
        }
        panic!("it ended without saying {text}")
    })
    .await
}

#[tokio::test]
async fn mosquitto_sub_sees_its_application_by_any_wildcard() {
    let stage = Stage::set().await;
    let output = stage.output().await;
    for version in ["mqttv311", "mqttv5"] {
        for filter in ["+/devices/+/up", "#", "app-one/devices/dev/up"] {
            let (host, port) = (stage.host(), stage.port());
            let (mut child, mut lines) = stranger(
                "mosquitto_sub",
                &[
                    "-h",
                    &host,
                    "-p",
                    &port,
                    "-V",
                    version,
                    "-u",
                    "app-one",
                    "-P",
                    "account.read",
                    "-t",
                    filter,
                    "-C",
                    "1",
                    "-v",
                    "-d",
                ],
            );
            line_with(&mut lines, "Subscribed").await;
            publish_up(&output, "app-two", "foreign");
            publish_up(&output, "app-one", "own");
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
async fn mosquitto_pub_sends_a_downlink_and_learns_of_a_wrong_key() {
    let stage = Stage::set().await;
    let mut observer = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    observer.subscribe("#").await;
    let (host, port) = (stage.host(), stage.port());
    let publish = |version, qos, key| {
        let child = Command::new("mosquitto_pub")
            .args(["-h", &host, "-p", &port, "-V", version, "-u", "app-one", "-P", key, "-q", qos])
            .args(["-t", "app-one/devices/dev/down", "-m", "down"])
            .output();
        async { soon("mosquitto_pub", child).await.expect("install mosquitto-clients") }
    };
    for version in ["mqttv311", "mqttv5"] {
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
async fn a_downlink_that_may_not_be_is_acknowledged_and_goes_nowhere() {
    let stage = Stage::set().await;
    let mut observer = Peer::connect(stage.broker.address(), &Login::new(4, "app-two", "account.both")).await;
    observer.subscribe("#").await;
    let (host, port) = (stage.host(), stage.port());
    let ran = Command::new("mosquitto_pub")
        .args(["-h", &host, "-p", &port, "-u", "app-one", "-P", "account.both", "-q", "1"])
        .args(["-t", "app-two/devices/dev/down", "-m", "foreign"])
        .output();
    // MQTT 3.1.1 has no word for a refusal but to acknowledge.
    assert!(soon("mosquitto_pub", ran).await.unwrap().status.success());
    observer.publish("app-two/devices/dev/down", "own").await;
    assert_eq!(observer.next().await.1, "own");
}

#[tokio::test]
async fn tls_is_served_while_another_client_never_shakes_hands() {
    let (certificate, config) = tls();
    let keys = Arc::new(Keys::default());
    keys.grant("app-one", "account.read", &[READS]);
    let settings = Settings { tls_listen: "127.0.0.1:0".to_owned(), ..settings() };
    let broker = Broker::start(&settings, Some(config), keys, &crate::stage::SameBytes).await.unwrap();
    let address = broker.tls_address().unwrap();
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(Peer::open(address, 4).await);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, certificate).unwrap();
    let port = address.port().to_string();
    let (mut child, mut lines) = stranger(
        "mosquitto_sub",
        &[
            "-h",
            "localhost",
            "-p",
            &port,
            "--cafile",
            file.to_str().unwrap(),
            "-u",
            "app-one",
            "-P",
            "account.read",
            "-t",
            "#",
            "-d",
            "-E",
        ],
    );
    line_with(&mut lines, "Subscribed").await;
    assert!(child.wait().await.unwrap().success());
}

/// A self-signed certificate for localhost, as PEM and as a server uses it.
fn tls() -> (String, Arc<ServerConfig>) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    (signed.cert.pem(), Arc::new(config))
}
