#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod benchmark;
mod certificates;
mod clock;
mod connection;
mod log;
mod patience;
mod program;
mod random;
mod sealed_file;
mod small_disk;
mod stand_in;
mod store;

use std::io::Write;

pub use self::{
    benchmark::{figures, load, process},
    certificates::Certificates,
    clock::ManualClock,
    connection::{MqttClient, MqttMessage, Proxy},
    log::{Log, Logging},
    patience::{PATIENCE, soon},
    program::{
        KafkaMock, Killer, Mosquitto, Node, ObjectServer, Postgres, Python, RABBITMQ_MESSAGE_BYTES_MAX, RabbitMq,
        RangeAnswer, RedisCluster, RedisProcess, RedisSentinels, Schemathesis, Watchdog, redis_command,
    },
    random::{CountingRandom, FixedRandom},
    sealed_file::without_checksums,
    small_disk::SmallDisk,
    stand_in::{
        CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TENANT, CHIRPSTACK_TOKEN, ChirpStackApi,
        THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi, chirpstack_uplink, chirpstack_uplink_json,
        things_stack_uplink,
    },
    store::{FailingStore, RecordingStore, SlowStore},
};

/// False with `REQUIRE_SERVICES=0`, which skips tests that need third-party programs even where these are installed.
pub fn programs_may_run() -> bool {
    std::env::var_os("REQUIRE_SERVICES").is_none_or(|value| value != "0")
}

/// Reports that a test cannot run because `missing`, and how to change that.
///
/// # Panics
///
/// With `REQUIRE_SERVICES=1`, which lets no test be skipped.
pub fn skip(missing: &str, remedy: &str) {
    // Whoever turns programs off knows that their tests do not run.
    if !programs_may_run() {
        return;
    }
    let is_required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
    assert!(!is_required, "{missing}: {remedy}");
    report_skipped(missing, remedy);
}

/// Says that a test does not run, also where all services are required.
fn report_skipped(missing: &str, remedy: &str) {
    // Written past the test runner's capture, which hides what a passing test prints.
    std::io::stderr().write_all(format!("skipped: {missing}; {remedy}\n").as_bytes()).unwrap();
}
