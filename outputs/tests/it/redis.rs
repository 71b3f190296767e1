//! Redis Streams: what a real Redis gets, whatever happens to it.

use std::{io::Write, time::Duration};

use outputs::{RedisSettings, Settings};
use redis::{Connection, cmd};
use serde_json::{Value, json};
use testing::{Certificates, Log, RedisProcess, RedisSentinels};
use tokio::time::timeout;
use tracing::Level;

use crate::harness::{WAIT_MAX, app_id, in_order, publish, publish_numbers, start, store};

fn settings(redis: &RedisProcess) -> RedisSettings {
    RedisSettings { url: redis.url(), ..RedisSettings::default() }
}

fn connect(redis: &RedisProcess) -> Connection {
    redis::Client::open(redis.url()).unwrap().get_connection().unwrap()
}

/// The names and values of all entries of a stream, once there are enough.
async fn entries(redis: &RedisProcess, stream: &str, count: usize) -> Vec<Vec<String>> {
    let mut connection = connect(redis);
    let mut entries: Vec<(String, Vec<String>)> = Vec::new();
    let waiting = async {
        while entries.len() < count {
            entries = cmd("XRANGE").arg(stream).arg("-").arg("+").query(&mut connection).unwrap();
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT_MAX, waiting).await.expect("the entries are added");
    entries.into_iter().map(|(_, fields)| fields).collect()
}

fn field<'a>(entry: &'a [String], name: &str) -> &'a str {
    let found = entry.chunks(2).find(|pair| pair[0] == name);
    found.map_or("", |pair| &pair[1])
}

fn number(entry: &[String]) -> u64 {
    let body: Value = serde_json::from_str(field(entry, "body")).unwrap();
    body["n"].as_u64().unwrap()
}

// Conformance: Redis Streams, of one server, a cluster, or behind sentinels
#[tokio::test]
async fn an_entry_says_what_it_is() {
    let Some(redis) = RedisProcess::start() else { return };
    let outputs = start(&store(), &[], &[settings(&redis)], &Settings::default());
    publish(&outputs, &app_id("my-app"), "dev-1", "up", json!({"payload_raw": "Bw=="})).await;
    publish(&outputs, &app_id("my-app"), "dev-1", "down/sent", json!({"n": 1})).await;
    let entries = entries(&redis, "airlock:my-app", 2).await;
    for (name, value) in [
        ("topic", "my-app/devices/dev-1/up"),
        ("body", r#"{"payload_raw":"Bw=="}"#),
        ("app_id", "my-app"),
        ("dev_id", "dev-1"),
    ] {
        assert_eq!(field(&entries[0], name), value);
    }
    assert!(field(&entries[0], "time").ends_with('Z'));
    assert!(field(&entries[0], "id") < field(&entries[1], "id"), "it tells repeated messages");
    assert_eq!(field(&entries[1], "topic"), "my-app/devices/dev-1/events/down/sent");
    outputs.stop().await;
}

// Conformance: Redis Streams, of one server, a cluster, or behind sentinels
#[tokio::test]
async fn what_was_accepted_survives_kills() {
    let Some(mut redis) = RedisProcess::start() else { return };
    let (store, my_app, settings) = (store(), app_id("my-app"), settings(&redis));
    let outputs = start(&store, &[], std::slice::from_ref(&settings), &Settings::default());
    publish_numbers(&outputs, &my_app, "dev-1", 0..100).await;
    redis.stop();
    publish_numbers(&outputs, &my_app, "dev-1", 100..200).await;
    outputs.stop().await;
    let outputs = start(&store, &[], &[settings], &Settings::default());
    publish_numbers(&outputs, &my_app, "dev-1", 200..300).await;
    redis.start_again();
    let mut arrived = Vec::new();
    while arrived.len() < 300 {
        arrived = in_order(entries(&redis, "airlock:my-app", 300).await.iter().map(|entry| number(entry)));
    }
    assert_eq!(arrived, Vec::from_iter(0..300));
    outputs.stop().await;
}

// Conformance: Redis Streams, of one server, a cluster, or behind sentinels
#[tokio::test]
async fn a_stream_is_bounded() {
    let Some(redis) = RedisProcess::start() else { return };
    let settings = RedisSettings { stream: "all".to_owned(), length_max: 1, ..settings(&redis) };
    let outputs = start(&store(), &[], &[settings], &Settings::default());
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..900).await;
    let mut last = None;
    while last != Some(899) {
        last = entries(&redis, "all", 1).await.last().map(|entry| number(entry));
    }
    let length: usize = cmd("XLEN").arg("all").query(&mut connect(&redis)).unwrap();
    assert!(length < 300, "{length} entries, though it is bounded to about one");
    outputs.stop().await;
}

// Conformance: Redis Streams, of one server, a cluster, or behind sentinels
#[tokio::test]
async fn a_cluster_gets_entries_wherever_their_streams_are() {
    let Some(redis) = RedisProcess::start_cluster() else { return };
    let settings = RedisSettings { stream: "airlock:{{app_id}}".to_owned(), ..settings(&redis) };
    let outputs = start(&store(), &[], &[settings], &Settings::default());
    for app in ["one-app", "two-app"] {
        publish_numbers(&outputs, &app_id(app), "dev-1", [7]).await;
        let entries = entries(&redis, &format!("airlock:{{{app}}}"), 1).await;
        assert_eq!(number(&entries[0]), 7);
    }
    outputs.stop().await;
}

// Conformance: Redis Streams, of one server, a cluster, or behind sentinels
#[tokio::test]
async fn entries_follow_the_primary() {
    let Some(mut redis) = RedisSentinels::start(1) else { return };
    let settings = RedisSettings { url: redis.primary_url(), sentinels: redis.urls(), ..RedisSettings::default() };
    let outputs = start(&store(), &[], &[settings], &Settings::default());
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..10).await;
    let mut arrived = Vec::new();
    while !arrived.contains(&9) {
        arrived = numbers_at_primary(&redis).await;
    }
    redis.kill_primary();
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 10..20).await;
    let waiting = async {
        while !arrived.contains(&19) {
            arrived = numbers_at_primary(&redis).await;
        }
    };
    timeout(WAIT_MAX, waiting).await.expect("what waits goes to the server that took over");
    outputs.stop().await;
}

/// Returns the messages at the server that the sentinels name as primary; none while it cannot be asked.
async fn numbers_at_primary(redis: &RedisSentinels) -> Vec<u64> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    let ask = || {
        let mut sentinels = redis::Client::open(redis.urls()[0].as_str())?.get_connection()?;
        let name = redis.primary_url().replace("redis://", "");
        let (host, port): (String, u16) =
            cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name.trim_end_matches('/')).query(&mut sentinels)?;
        let mut primary = redis::Client::open((host, port))?.get_connection()?;
        cmd("XRANGE").arg("airlock:my-app").arg("-").arg("+").query(&mut primary)
    };
    let entries: redis::RedisResult<Vec<(String, Vec<String>)>> = ask();
    entries.unwrap_or_default().iter().map(|(_, entry)| number(entry)).collect()
}

#[tokio::test]
async fn certificates_are_checked() {
    let (certificates, other) = (Certificates::create(), Certificates::create());
    let Some((redis, url)) = RedisProcess::start_tls(&certificates) else { return };
    let with = |authority: &Certificates| RedisSettings {
        url: url.clone(),
        ca_certificate: Some(authority.path("ca.pem")),
        certificate: Some(certificates.path("client.pem")),
        key: Some(certificates.path("client.key")),
        ..RedisSettings::default()
    };
    let outputs = start(&store(), &[], &[with(&certificates)], &Settings::default());
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [7]).await;
    entries(&redis, "airlock:my-app", 1).await;
    outputs.stop().await;
    let (log, _logging) = Log::start(Level::INFO);
    let outputs = start(&store(), &[], &[with(&other)], &Settings::default());
    log.until("no connection, so messages wait").await;
    outputs.stop().await;
}

#[tokio::test]
async fn refusals_say_what_to_do_and_what_waits_arrives_later() {
    let Some(redis) = RedisProcess::start() else { return };
    let (log, _logging) = Log::start(Level::INFO);
    let outputs = start(&store(), &[], &[settings(&redis)], &Settings::default());
    redis.call(&[b"SET", b"airlock:my-app", b"text"]);
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [7]).await;
    log.until("the key is no stream: name another one with `stream`").await;
    redis.call(&[b"DEL", b"airlock:my-app"]);
    assert_eq!(number(&entries(&redis, "airlock:my-app", 1).await[0]), 7);
    outputs.stop().await;

    redis.call(&[b"CONFIG", b"SET", b"requirepass", b"hush"]);
    let (log, _logging) = Log::start(Level::INFO);
    let outputs = start(&store(), &[], &[settings(&redis)], &Settings::default());
    let line = log.until("check `username` and `password_file`").await;
    assert!(line.contains("ERROR") && line.contains("output.redis main"), "{line}");
    outputs.stop().await;
}

#[tokio::test]
async fn the_documented_permissions_suffice() {
    let Some(redis) = RedisProcess::start() else { return };
    redis.call(&[b"ACL", b"SETUSER", b"airlock", b"on", b">hush", b"~airlock:*", b"+xadd", b"+ping", b"+info"]);
    let mut password = tempfile::NamedTempFile::new().unwrap();
    password.write_all(b"hush\n").unwrap();
    let limited = RedisSettings {
        username: Some("airlock".to_owned()),
        password_file: Some(password.path().to_owned()),
        ..settings(&redis)
    };
    let outputs = start(&store(), &[], &[limited], &Settings::default());
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [7]).await;
    entries(&redis, "airlock:my-app", 1).await;
    outputs.stop().await;
}

#[tokio::test]
async fn what_waits_for_an_output_that_is_not_configured_stays() {
    let Some(mut redis) = RedisProcess::start() else { return };
    let (store, my_app, settings) = (store(), app_id("my-app"), settings(&redis));
    redis.stop();
    let outputs = start(&store, &[], std::slice::from_ref(&settings), &Settings::default());
    publish_numbers(&outputs, &my_app, "dev-1", [7]).await;
    outputs.stop().await;
    // It looks for what waits as soon as it starts.
    let without = start(&store, &[], &[], &Settings::default());
    publish_numbers(&without, &my_app, "dev-1", 0..100).await;
    without.stop().await;
    redis.start_again();
    let outputs = start(&store, &[], &[settings], &Settings::default());
    assert_eq!(number(&entries(&redis, "airlock:my-app", 1).await[0]), 7);
    outputs.stop().await;
}
