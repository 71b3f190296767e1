//! Kafka: what another implementation of its protocol gets, whatever happens to it.

use std::{io::Write, path::Path, sync::Arc};

use outputs::{KafkaCompression, KafkaMechanism, KafkaSettings, OperatorSettings, Outputs, Settings};
use serde_json::{Value, json};
use store::Store;
use testing::{Certificates, KafkaMock, Log};
use tokio::time::timeout;
use tracing::Level;

use crate::harness::{WAIT_MAX, app_id, in_order, publish, publish_numbers, start_with, store};

/// Codes of the protocol.
const MESSAGE_TOO_LARGE: i16 = 10;
const TOPIC_AUTHORIZATION_FAILED: i16 = 29;

fn packages() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/kafka"))
}

/// A cluster with a topic of three partitions.
fn cluster() -> Option<KafkaMock> {
    let mut cluster = KafkaMock::start(packages())?;
    cluster.create_topic("airlock", 3);
    Some(cluster)
}

fn settings(cluster: &KafkaMock) -> KafkaSettings {
    KafkaSettings { brokers: vec![cluster.address()], ..KafkaSettings::default() }
}

fn start(store: &Arc<dyn Store>, settings: KafkaSettings) -> Outputs {
    let delivery = Settings { timeout_ms: 3000, ..Settings::default() };
    start_with(store, OperatorSettings { kafka: &[settings], ..OperatorSettings::default() }, &delivery)
}

async fn next(cluster: &mut KafkaMock) -> Value {
    timeout(WAIT_MAX, cluster.next()).await.expect("a record arrives")
}

fn number(record: &Value) -> u64 {
    let body: Value = serde_json::from_str(record["value"].as_str().unwrap()).unwrap();
    body["n"].as_u64().unwrap()
}

/// The numbers of a device, once all of them have come; records may come more than once.
async fn numbers(cluster: &mut KafkaMock, count: usize) -> Vec<u64> {
    let mut arrived = Vec::new();
    loop {
        arrived.push(number(&next(cluster).await));
        let first = in_order(arrived.iter().copied());
        if first.len() == count {
            return first;
        }
    }
}

// Conformance: Kafka, with the feature `kafka`
#[tokio::test]
async fn a_record_says_what_it_is() {
    let Some(mut cluster) = cluster() else { return };
    let outputs = start(&store(), settings(&cluster));
    publish(&outputs, &app_id("my-app"), "dev-1", "up", json!({"payload_raw": "Bw=="})).await;
    let up = next(&mut cluster).await;
    publish(&outputs, &app_id("my-app"), "dev-1", "down/sent", json!({"n": 1})).await;
    let sent = next(&mut cluster).await;
    assert_eq!((&up["key"], &up["value"]), (&json!("my-app/dev-1"), &json!(r#"{"payload_raw":"Bw=="}"#)));
    let headers = &up["headers"];
    assert_eq!(
        (&headers["app_id"], &headers["dev_id"], &headers["event"]),
        (&json!("my-app"), &json!("dev-1"), &json!("up"))
    );
    assert_eq!(sent["headers"]["event"], "down/sent");
    assert!(headers["id"].as_str() < sent["headers"]["id"].as_str(), "it tells repeated messages");
    assert!(up["time"].as_i64() > Some(1_700_000_000_000), "{up}");
    assert_eq!(up["partition"], sent["partition"]);
    outputs.stop().await;
}

// Conformance: Kafka, with the feature `kafka`
#[tokio::test]
async fn devices_keep_their_order_and_share_the_partitions() {
    let Some(mut cluster) = cluster() else { return };
    let outputs = start(&store(), settings(&cluster));
    let my_app = app_id("my-app");
    let devices = ["dev-1", "dev-2", "dev-3", "dev-4", "dev-5", "dev-6"];
    futures::future::join_all(devices.map(|dev_id| publish_numbers(&outputs, &my_app, dev_id, 0..100))).await;
    let mut records = Vec::new();
    while records.len() < 600 {
        records.push(next(&mut cluster).await);
    }
    for dev_id in devices {
        let of_device: Vec<_> = records.iter().filter(|record| record["headers"]["dev_id"] == dev_id).collect();
        assert!(of_device.iter().all(|record| record["partition"] == of_device[0]["partition"]));
        assert_eq!(in_order(of_device.into_iter().map(number)), Vec::from_iter(0..100));
    }
    for partition in 0..3 {
        assert!(records.iter().any(|record| record["partition"] == partition), "{partition} is not used");
    }
    outputs.stop().await;
}

#[tokio::test]
async fn every_compression_is_understood() {
    let Some(mut cluster) = cluster() else { return };
    cluster.create_topic("lora.my-app", 1);
    for compression in [
        KafkaCompression::None,
        KafkaCompression::Gzip,
        KafkaCompression::Snappy,
        KafkaCompression::Lz4,
        KafkaCompression::Zstd,
    ] {
        let topic = "lora.{app_id}".to_owned();
        let outputs = start(&store(), KafkaSettings { compression, topic, ..settings(&cluster) });
        publish(&outputs, &app_id("my-app"), "dev-1", "up", json!({"n": 7, "text": "a".repeat(10_000)})).await;
        let record = next(&mut cluster).await;
        assert_eq!((record["topic"].as_str(), number(&record)), (Some("lora.my-app"), 7), "{compression:?}");
        outputs.stop().await;
    }
}

// Conformance: Kafka, with the feature `kafka`
#[tokio::test]
async fn what_was_accepted_survives_outages() {
    let Some(mut cluster) = cluster() else { return };
    let (store, my_app, settings) = (store(), app_id("my-app"), settings(&cluster));
    let outputs = start(&store, settings.clone());
    publish_numbers(&outputs, &my_app, "dev-1", 0..100).await;
    cluster.stop();
    publish_numbers(&outputs, &my_app, "dev-1", 100..200).await;
    outputs.stop().await;
    let outputs = start(&store, settings);
    publish_numbers(&outputs, &my_app, "dev-1", 200..300).await;
    cluster.start_again();
    assert_eq!(numbers(&mut cluster, 300).await, Vec::from_iter(0..300));
    outputs.stop().await;
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_left() {
    let Some(mut cluster) = cluster() else { return };
    let outputs = start(&store(), settings(&cluster));
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [0]).await;
    next(&mut cluster).await;
    let (log, _logging) = Log::start(Level::INFO);
    cluster.freeze();
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 1..50).await;
    log.until("no connection, so messages wait").await;
    cluster.thaw();
    assert_eq!(numbers(&mut cluster, 49).await, Vec::from_iter(1..50));
    outputs.stop().await;
}

#[tokio::test]
async fn refusals_say_what_to_do_and_what_waits_arrives_later() {
    let Some(mut cluster) = cluster() else { return };
    let (log, _logging) = Log::start(Level::INFO);
    let outputs = start(&store(), KafkaSettings { topic: "later".to_owned(), ..settings(&cluster) });
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [7]).await;
    let line = log.until("create the topic").await;
    assert!(line.contains("ERROR") && line.contains("output.kafka main"), "{line}");
    cluster.create_topic("later", 1);
    assert_eq!(number(&next(&mut cluster).await), 7);
    cluster.refuse(TOPIC_AUTHORIZATION_FAILED);
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [8]).await;
    log.until("let the user write to the topic").await;
    assert_eq!(number(&next(&mut cluster).await), 8);
    outputs.stop().await;
}

#[tokio::test]
async fn only_a_message_that_is_too_large_alone_is_given_up() {
    let Some(mut cluster) = cluster() else { return };
    let (log, _logging) = Log::start(Level::INFO);
    let outputs = start(&store(), settings(&cluster));
    cluster.refuse(MESSAGE_TOO_LARGE);
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [1]).await;
    assert_eq!(number(&next(&mut cluster).await), 1, "the batch was too large, not the message");
    cluster.refuse(MESSAGE_TOO_LARGE);
    cluster.refuse(MESSAGE_TOO_LARGE);
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [2]).await;
    log.until("a message was given up").await;
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [3]).await;
    assert_eq!(number(&next(&mut cluster).await), 3);
    outputs.stop().await;
}

#[tokio::test]
async fn certificates_and_passwords_are_checked() {
    let (certificates, other) = (Certificates::create(), Certificates::create());
    let Some(mut cluster) = KafkaMock::start_tls(packages(), &certificates) else { return };
    cluster.create_topic("airlock", 1);
    let [right, wrong] = ["hush\n", "wrong\n"].map(|text| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    });
    let with = |authority: &Certificates, password: &tempfile::NamedTempFile, mechanism| KafkaSettings {
        tls: true,
        ca_certificate: Some(authority.path("ca.pem")),
        username: Some("airlock".to_owned()),
        password_file: Some(password.path().to_owned()),
        mechanism,
        ..settings(&cluster)
    };
    let [plain, sha_256, sha_512] = [KafkaMechanism::Plain, KafkaMechanism::ScramSha256, KafkaMechanism::ScramSha512]
        .map(|mechanism| with(&certificates, &right, mechanism));
    let wrong_password = with(&certificates, &wrong, KafkaMechanism::default());
    let wrong_authority = with(&other, &right, KafkaMechanism::default());
    for settings in [plain, sha_256, sha_512] {
        let outputs = start(&store(), settings);
        publish_numbers(&outputs, &app_id("my-app"), "dev-1", [7]).await;
        assert_eq!(number(&next(&mut cluster).await), 7);
        outputs.stop().await;
    }
    for (settings, advice) in [(wrong_password, "check `username`"), (wrong_authority, "check `ca_certificate`")] {
        let (log, _logging) = Log::start(Level::INFO);
        let outputs = start(&store(), settings);
        let logged = log.until(advice).await;
        assert!(!logged.contains("hush"), "{logged}");
        outputs.stop().await;
    }
}
