//! Decoded events in a stream like ChirpStack's own, and Redis behind TLS.

use serde_json::{Value, json};
use testing::{Certificates, RedisProcess, chirpstack_uplink, chirpstack_uplink_json, soon};

use crate::harness::{Network, device_info, send, topic, uplink};

const DEVICE: &str = "a300000000000000";
const SCRIPT: &str = "function decodeUplink(input) { return {data: {n: input.bytes[0], text: 'x'}} }";
const KEY: &[u8] = b"device:stream:event";

fn add(redis: &RedisProcess, counter: u32) {
    redis.call(&[b"XADD", KEY, b"*", b"up", &chirpstack_uplink(&uplink(DEVICE, counter, "AQ=="))]);
}

/// The newest entry of a stream, once it is the uplink with this counter.
async fn until_added(redis: &RedisProcess, key: &[u8], counter: u32) -> Value {
    let added = async {
        loop {
            if let Some((name, value)) = redis.newest(key)
                && name == "up"
                && let json = chirpstack_uplink_json(&value)
                && json["fCnt"] == counter
            {
                return json;
            }
            tokio::task::yield_now().await;
        }
    };
    soon("the entry", added).await
}

fn decoded(counter: u32) -> Value {
    let mut event = uplink(DEVICE, counter, "AQ==");
    event["object"] = json!({"n": 1.0, "text": "x"});
    event
}

#[tokio::test]
async fn events_from_mqtt_are_added_to_a_stream() {
    let (Some(mut redis), Some(mut network)) = (RedisProcess::start(), Network::start().await) else { return };
    network.device(DEVICE, SCRIPT);
    network.settings.to.url = redis.url();
    let _bridge = network.bridge().await;
    let mut chirpstack = network.chirpstack().await;
    send(&mut chirpstack, DEVICE, 1, "AQ==").await;
    assert_eq!(until_added(&redis, KEY, 1).await, decoded(1));
    // A server that restarts gets what was published in between.
    redis.stop();
    let join = json!({"deduplicationId": "j", "deviceInfo": device_info(DEVICE), "devAddr": "00030000"});
    chirpstack.publish(&topic(DEVICE, "join"), join.to_string()).await;
    chirpstack.publish(&topic(DEVICE, "newer"), "{}").await;
    send(&mut chirpstack, DEVICE, 2, "AQ==").await;
    redis.start_again();
    assert_eq!(until_added(&redis, KEY, 2).await, decoded(2));
    assert_eq!(redis.call(&[b"XLEN", KEY]), ":3\r\n");
}

#[tokio::test]
async fn the_stream_keeps_a_bounded_history_and_has_another_key_on_the_same_server() {
    let (Some(redis), Some(mut network)) = (RedisProcess::start(), Network::start().await) else { return };
    network.device(DEVICE, SCRIPT);
    network.settings.mqtt.url.clear();
    network.settings.redis.url = redis.url();
    network.settings.to.url = redis.url();
    network.settings.to_history_max = 100;
    let _bridge = network.bridge().await;
    for counter in 0..500 {
        add(&redis, counter);
    }
    let key = b"airlock:device:stream:event";
    assert_eq!(until_added(&redis, key, 499).await, decoded(499));
    // Redis removes whole blocks, of 100 entries at most.
    let kept: u32 = redis.call(&[b"XLEN", key]).trim_matches([':', '\r', '\n']).parse().unwrap();
    assert!((100..=300).contains(&kept), "{kept} are kept");
}

/// Sets a Redis with TLS for both directions.
fn set(network: &mut Network, url: &str, certificates: &Certificates) {
    network.device(DEVICE, SCRIPT);
    network.settings.mqtt.url.clear();
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(|name| Some(certificates.path(name)));
    let (redis, to) = (&mut network.settings.redis, &mut network.settings.to);
    (redis.url, to.url) = (url.to_owned(), url.to_owned());
    (redis.ca_certificate, to.ca_certificate) = (ca.clone(), ca);
    (redis.certificate, to.certificate) = (certificate.clone(), certificate);
    (redis.key, to.key) = (key.clone(), key);
}

#[tokio::test]
async fn redis_may_be_behind_tls_and_want_a_client_certificate() {
    let (certificates, network) = (Certificates::create(), Network::start().await);
    let (Some((redis, url)), Some(mut network)) = (RedisProcess::start_tls(&certificates), network) else { return };
    set(&mut network, &url, &certificates);
    let _bridge = network.bridge().await;
    add(&redis, 1);
    assert_eq!(until_added(&redis, b"airlock:device:stream:event", 1).await, decoded(1));
}
