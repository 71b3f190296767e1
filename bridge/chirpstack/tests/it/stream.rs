//! Events from ChirpStack's Redis stream.

use bridge::Running;
use serde_json::{Value, json};
use testing::{RedisProcess, chirpstack_uplink, soon};

use crate::{
    harness::{Network, next_up, topic, uplink},
    losses::{DEVICES, SCRIPT, receive, receive_range},
};

const KEY: &[u8] = b"device:stream:event";

/// A network whose events come from Redis, and are published on its own broker.
async fn start(redis: Option<RedisProcess>) -> Option<(Network, RedisProcess)> {
    let (redis, mut network) = (redis?, Network::start().await?);
    DEVICES.iter().for_each(|device| network.device(device, SCRIPT));
    network.settings.redis.url = redis.url();
    Some((network, redis))
}

fn add(redis: &RedisProcess, name: &str, value: &[u8]) {
    let response = redis.call(&[b"XADD", KEY, b"*", name.as_bytes(), value]);
    assert!(response.starts_with('$'), "{response}");
}

fn add_uplinks(redis: &RedisProcess, counters: std::ops::Range<u32>) {
    for counter in counters {
        for device in DEVICES {
            add(redis, "up", &chirpstack_uplink(&uplink(device, counter, "AQ==")));
        }
    }
}

/// Lets a consumer that died long ago have received everything.
fn read_as_dead_consumer(redis: &RedisProcess) {
    redis.call(&[b"XGROUP", b"CREATE", KEY, b"airlock", b"0", b"MKSTREAM"]);
    redis.call(&[b"XREADGROUP", b"GROUP", b"airlock", b"dead", b"STREAMS", KEY, b">"]);
    let age = b"for _, entry in ipairs(redis.call('XPENDING', KEYS[1], 'airlock', '-', '+', 1000)) do \
        redis.call('XCLAIM', KEYS[1], 'airlock', 'dead', 0, entry[1], 'IDLE', 3600000, 'JUSTID') end";
    let response = redis.call(&[b"EVAL", age, b"1", KEY]);
    assert!(!response.starts_with('-'), "{response}");
}

/// Waits until the group has acknowledged everything.
async fn until_acknowledged(redis: &RedisProcess) {
    let acknowledged = async {
        while !redis.call(&[b"XPENDING", KEY, b"airlock"]).starts_with("*4\r\n:0\r\n") {
            tokio::task::yield_now().await;
        }
    };
    soon("the acknowledgement", acknowledged).await;
}

#[tokio::test]
async fn an_event_of_the_stream_is_published_like_one_over_mqtt() {
    for redis in [RedisProcess::start(), RedisProcess::start_cluster()] {
        let Some((network, redis)) = start(redis).await else { return };
        let _bridge = network.bridge().await;
        let mut application = network.application().await;
        let mut expected = uplink(DEVICES[0], 1, "AQ==");
        add(&redis, "up", &chirpstack_uplink(&expected));
        let message = application.next().await;
        assert_eq!(message.topic, format!("airlock/{}", topic(DEVICES[0], "up")));
        expected["object"] = json!({"n": 1});
        assert_eq!(message.json(), expected);
        until_acknowledged(&redis).await;
    }
}

#[tokio::test]
async fn what_a_dead_consumer_left_is_taken_over() {
    let Some((network, redis)) = start(RedisProcess::start()).await else { return };
    add_uplinks(&redis, 0..20);
    read_as_dead_consumer(&redis);
    add_uplinks(&redis, 20..40);
    let mut application = network.application().await;
    let _bridge = network.bridge().await;
    receive(&mut application, 40).await;
    until_acknowledged(&redis).await;
}

#[tokio::test]
async fn two_bridges_share_a_stream() {
    let Some((network, redis)) = start(RedisProcess::start()).await else { return };
    let mut application = network.application().await;
    let one = network.bridge().await;
    let environment = network.environment("other");
    let other = chirpstack::ChirpStackBridge::start(&network.settings, environment).await.unwrap();
    other.ready().await;
    add_uplinks(&redis, 0..50);
    let mut missing: std::collections::BTreeSet<String> =
        DEVICES.iter().flat_map(|device| (0..50).map(move |counter| format!("{device}-{counter}"))).collect();
    while !missing.is_empty() {
        let up: Value = next_up(&mut application).await;
        let id = up["deduplicationId"].as_str().unwrap();
        assert!(missing.remove(id), "{id} came twice");
    }
    one.stop().await;
    other.stop().await;
    until_acknowledged(&redis).await;
}

#[tokio::test]
async fn a_redis_that_restarts_loses_nothing() {
    let Some((network, mut redis)) = start(RedisProcess::start()).await else { return };
    let mut application = network.application().await;
    let _bridge = network.bridge().await;
    add_uplinks(&redis, 0..20);
    redis.stop();
    redis.start_again();
    add_uplinks(&redis, 20..40);
    receive(&mut application, 40).await;
    until_acknowledged(&redis).await;
}

/// A Redis without persistence starts without either, and anybody may delete the group.
// Conformance: A Redis stream of events, or its group, that is gone is made again
#[tokio::test]
async fn a_stream_and_a_group_that_are_gone_are_made_again() {
    let Some((network, redis)) = start(RedisProcess::start()).await else { return };
    let mut application = network.application().await;
    let _bridge = network.bridge().await;
    add_uplinks(&redis, 0..10);
    receive(&mut application, 10).await;
    let deletions: [&[&[u8]]; 3] =
        [&[b"XGROUP", b"DESTROY", KEY, b"airlock"], &[b"DEL", KEY], &[b"XGROUP", b"DESTROY", KEY, b"airlock"]];
    for (round, deletion) in (1..).zip(deletions) {
        assert_eq!(redis.call(deletion), ":1\r\n");
        // What comes before the group is there again is not lost.
        add_uplinks(&redis, round * 10..(round + 1) * 10);
        receive_range(&mut application, u64::from(round) * 10..u64::from(round + 1) * 10).await;
    }
    until_acknowledged(&redis).await;
}

#[tokio::test]
async fn a_bridge_that_stops_continues_with_the_next_event() {
    let Some((network, redis)) = start(RedisProcess::start()).await else { return };
    let mut application = network.application().await;
    for round in 0..3 {
        let bridge = network.bridge().await;
        add_uplinks(&redis, round * 10..(round + 1) * 10);
        bridge.stop().await;
    }
    let _bridge = network.bridge().await;
    receive(&mut application, 30).await;
}

#[tokio::test]
async fn what_is_no_event_is_dropped() {
    let Some((network, redis)) = start(RedisProcess::start()).await else { return };
    // These have left the stream before their consumer had dealt with them.
    add_uplinks(&redis, 0..5);
    read_as_dead_consumer(&redis);
    redis.call(&[b"XTRIM", KEY, b"MAXLEN", b"0"]);
    let _bridge = network.bridge().await;
    let mut application = network.application().await;
    let json = uplink(DEVICES[0], 1, "AQ==");
    add(&redis, "up", json.to_string().as_bytes());
    add(&redis, "up", b"\xff\xff");
    add(&redis, "up", b"");
    add(&redis, "unheard-of", &chirpstack_uplink(&json));
    add(&redis, "up", &chirpstack_uplink(&uplink(DEVICES[0], 2, "AQ==")));
    assert_eq!(next_up(&mut application).await["fCnt"], 2);
    until_acknowledged(&redis).await;
}

#[tokio::test]
async fn a_start_with_wrong_settings_says_what_to_do() {
    let Some(mut network) = Network::start().await else { return };
    let broker = std::mem::take(&mut network.settings.mqtt.url);
    for (redis, mqtt, expected) in [
        ("redis://localhost", "", "give the broker for decoded events with --to"),
        ("localhost:6379", &broker, "must be like redis://host:6379, or rediss:// for TLS"),
        ("redis://me:hush@localhost", &broker, "set `username` and `password_file`"),
    ] {
        network.settings.redis.url = redis.to_owned();
        network.settings.mqtt.url = mqtt.to_owned();
        let text = network.refusal().await;
        assert!(text.contains(expected) && !text.contains("hush"), "{redis}: {text}");
    }
    network.settings.redis.url = "redis://localhost".to_owned();
    network.settings.redis.ca_certificate = Some("ca.pem".into());
    let text = network.refusal().await;
    assert!(text.contains("must start with rediss:// where certificates are set"), "{text}");
    network.settings.redis.ca_certificate = None;
    network.settings.to.url = "redis://127.0.0.1:6379".to_owned();
    network.settings.to_prefix = Some(String::new());
    let text = network.refusal().await;
    assert!(text.contains("must not be ChirpStack's `key_prefix`"), "{text}");
    network.settings.redis.claim_after_ms = 999;
    let text = network.refusal().await;
    assert!(text.contains("must be at least 1000"), "{text}");
}
