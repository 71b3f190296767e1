//! Settings that cannot work are refused at the start, by their names and without their secrets.

use std::sync::Arc;

use outputs::{AmqpSettings, OperatorOutputs, RedisSettings, Settings};
use server::system::OsRandom;
use types::Random;

fn refusal(amqp: &[AmqpSettings], redis: &[RedisSettings]) -> String {
    let random: Arc<dyn Random> = Arc::new(OsRandom);
    let started = OperatorOutputs::start(amqp, redis, &Settings::default(), &random);
    started.err().expect("it is refused").to_string()
}

fn amqp() -> AmqpSettings {
    AmqpSettings::default()
}

fn redis() -> RedisSettings {
    RedisSettings::default()
}

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
