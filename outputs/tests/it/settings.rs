//! Settings that cannot work are refused at the start, by their names and without their secrets.

use std::sync::Arc;

use outputs::{AmqpSettings, KafkaSettings, OperatorOutputs, OperatorSettings, RedisSettings, Settings};
use server::system::OsRandom;
use types::Random;

fn refusal(amqp: &[AmqpSettings], redis: &[RedisSettings]) -> String {
    refusal_of(OperatorSettings { amqp, redis, kafka: &[] })
}

fn refusal_of(settings: OperatorSettings<'_>) -> String {
    let random: Arc<dyn Random> = Arc::new(OsRandom);
    let started = OperatorOutputs::start(settings, &Settings::default(), &random);
    started.err().expect("it is refused").to_string()
}

fn amqp() -> AmqpSettings {
    AmqpSettings::default()
}

fn redis() -> RedisSettings {
    RedisSettings::default()
}

// Conformance: Settings of outputs that cannot work are refused at the start
#[tokio::test]
async fn what_cannot_work_is_refused() {
    for (settings, expected) in [
        (AmqpSettings { url: "amqp://me:hush@host".to_owned(), ..amqp() }, "`output.amqp.url`"),
        (AmqpSettings { name: "a/b".to_owned(), ..amqp() }, "`output.amqp.name`"),
        (AmqpSettings { events: vec!["uplink".to_owned()], ..amqp() }, "has `uplink`: there are up, up/errors"),
        (AmqpSettings { ca_certificate: Some("ca.pem".into()), ..amqp() }, "must start with amqps://"),
        (AmqpSettings { password_file: Some("/nowhere".into()), ..amqp() }, "cannot read `/nowhere`"),
        (AmqpSettings { exchange: "x".repeat(256), ..amqp() }, "`output.amqp.exchange`"),
    ] {
        let refusal = refusal(&[settings], &[]);
        assert!(refusal.contains(expected) && !refusal.contains("hush"), "{refusal}");
    }
    for (settings, expected) in [
        (RedisSettings { url: "redis://:hush@host".to_owned(), ..redis() }, "`output.redis.url`"),
        (RedisSettings { url: "host:6379".to_owned(), ..redis() }, "must be like redis://host:6379"),
        (RedisSettings { stream: String::new(), ..redis() }, "`output.redis.stream`"),
        (RedisSettings { length_max: 0, ..redis() }, "`output.redis.length_max`"),
        (RedisSettings { key: Some("key.pem".into()), ..redis() }, "must start with rediss://"),
    ] {
        let refusal = refusal(&[], &[settings]);
        assert!(refusal.contains(expected) && !refusal.contains("hush"), "{refusal}");
    }
    assert!(refusal(&[amqp(), amqp()], &[]).contains("is used twice"));
}

fn kafka_refusal(settings: KafkaSettings) -> String {
    refusal_of(OperatorSettings { kafka: &[settings], ..OperatorSettings::default() })
}

#[tokio::test]
#[cfg(feature = "kafka")]
async fn what_cannot_work_with_kafka_is_refused() {
    let kafka = KafkaSettings::default;
    for (settings, expected) in [
        (KafkaSettings { brokers: Vec::new(), ..kafka() }, "`output.kafka.brokers`"),
        (KafkaSettings { brokers: vec!["host".to_owned()], ..kafka() }, "like host:9092"),
        (KafkaSettings { brokers: vec!["me:hush@host:9092".to_owned()], ..kafka() }, "like host:9092"),
        (KafkaSettings { topic: "a/b".to_owned(), ..kafka() }, "`output.kafka.topic`"),
        (KafkaSettings { username: Some("me".to_owned()), ..kafka() }, "together with `password_file`"),
        (KafkaSettings { ca_certificate: Some("ca.pem".into()), ..kafka() }, "`output.kafka.tls`"),
    ] {
        let refusal = kafka_refusal(settings);
        assert!(refusal.contains(expected) && !refusal.contains("hush"), "{refusal}");
    }
}

// Conformance: Settings of outputs that cannot work are refused at the start
#[tokio::test]
#[cfg(not(feature = "kafka"))]
async fn a_build_without_kafka_refuses_its_settings() {
    let refusal = kafka_refusal(KafkaSettings::default());
    assert!(refusal.contains("`output.kafka`") && refusal.contains("--features kafka"), "{refusal}");
}
