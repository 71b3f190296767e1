#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod certificates;
mod chirpstack;
mod clock;
mod failing_store;
pub mod figures;
mod kafka;
pub mod load;
mod mosquitto;
mod mqtt_client;
mod object_server;
mod packages;
mod patience;
mod port;
mod postgres;
pub mod process;
mod proxy;
mod rabbitmq;
mod random;
mod recording_store;
mod redis;
mod schemathesis;
mod small_disk;
mod things_stack;
mod watchdog;

use std::io::Write;

pub use self::{
    certificates::Certificates,
    chirpstack::{
        CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TENANT, CHIRPSTACK_TOKEN, ChirpStackApi,
        chirpstack_uplink, chirpstack_uplink_json,
    },
    clock::ManualClock,
    failing_store::FailingStore,
    kafka::KafkaMock,
    mosquitto::Mosquitto,
    mqtt_client::{MqttClient, MqttMessage},
    object_server::ObjectServer,
    packages::{Node, Python},
    patience::{PATIENCE, soon},
    postgres::Postgres,
    proxy::Proxy,
    rabbitmq::{RABBITMQ_MESSAGE_BYTES_MAX, RabbitMq},
    random::{CountingRandom, FixedRandom},
    recording_store::RecordingStore,
    redis::{RedisCluster, RedisProcess, RedisSentinels, encode as redis_command},
    schemathesis::Schemathesis,
    small_disk::SmallDisk,
    things_stack::{THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi, things_stack_uplink},
    watchdog::Watchdog,
};

/// Reports that a test cannot run because `missing`, and how to change that.
///
/// # Panics
///
/// With `REQUIRE_SERVICES=1`, which lets no test be skipped.
pub fn skip(missing: &str, remedy: &str) {
    let is_required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
    assert!(!is_required, "{missing}: {remedy}");
    report_skipped(missing, remedy);
}

/// Says that a test does not run, also where all services are required.
fn report_skipped(missing: &str, remedy: &str) {
    // Written past the test runner's capture, which hides what a passing test prints.
    std::io::stderr().write_all(format!("skipped: {missing}; {remedy}\n").as_bytes()).unwrap();
}
