//! ChirpStack's stream of events in a real Redis.

use std::fs;

use serde_json::{Value, json};
use testing::{RedisProcess, chirpstack_uplink};

use super::{command, counts, report, with_codec};
use crate::harness::{complaint, run};

const KEY: &[u8] = b"device:stream:event";

fn uplink(number: u32, celsius: f64) -> Value {
    json!({
        "deduplicationId": format!("{number:032x}"), "time": "2026-11-20T10:00:00.5+00:00", "fPort": 2, "data": "CVw=",
        "deviceInfo": {
            "applicationId": "a-1", "applicationName": "Cellar", "deviceProfileId": "p-1",
            "deviceProfileName": "Meter", "devEui": "0102030405060708", "deviceName": "Meter 1",
        },
        "object": {"celsius": celsius, "port": 2},
    })
}

fn add(redis: &RedisProcess, key: &[u8], name: &[u8], value: &[u8]) {
    let response = redis.call(&[b"XADD", key, b"*", name, value]);
    assert!(response.starts_with('$'), "{response}");
}

/// 500 uplinks, of which every tenth is wrong, and others between them.
fn with_events() -> Option<RedisProcess> {
    let redis = RedisProcess::start()?;
    for number in 0..500 {
        let celsius = if number % 10 == 0 { 1.0 } else { 23.96 };
        add(&redis, KEY, b"up", &chirpstack_uplink(&uplink(number, celsius)));
    }
    add(&redis, KEY, b"join", b"");
    add(&redis, KEY, b"up", b"{}");
    Some(redis)
}

// Conformance: ChirpStack's Redis stream is read to its end and left as it is
#[test]
fn every_uplink_of_the_stream_is_read_and_nothing_is_changed() {
    let (Some(redis), dir) = (with_events(), with_codec()) else { return };
    let state = || redis.call(&[b"XINFO", b"STREAM", KEY]) + &redis.call(&[b"XINFO", b"GROUPS", KEY]);
    let before = state();
    let (found, code) = report(&mut command(dir.path(), &redis.url(), &[]), "");
    assert_eq!((counts(&found), code), ([450, 50, 0, 0, 0], Some(2)), "{found:#}");
    assert_eq!((&found["others"], &found["damage"][0]["place"]), (&json!(1), &json!("entry 502")), "{found:#}");
    let example = &found["fields"]["celsius"]["example"];
    assert_eq!((&example["place"], &example["time"]), (&json!("entry 1"), &json!("2026-11-20T10:00:00.5Z")));
    for arguments in [["--device", "meter 1"], ["--application", "cellar"]] {
        let (found, _) = report(&mut command(dir.path(), &redis.url(), &arguments), "");
        assert_eq!(found["uplinks"], 500, "{arguments:?}");
    }
    assert_eq!(state(), before);
}

// Conformance: ChirpStack's Redis stream is read to its end and left as it is
#[test]
fn the_url_names_the_stream_and_the_database() {
    let (Some(redis), dir) = (RedisProcess::start(), with_codec()) else { return };
    add(&redis, b"eu:device:stream:event", b"up", &chirpstack_uplink(&uplink(1, 23.96)));
    let from = redis.url() + "/0?stream=eu:device:stream:event";
    assert_eq!(counts(&report(&mut command(dir.path(), &from, &[]), "").0), [1, 0, 0, 0, 0]);
    let output = run(&mut command(dir.path(), &(redis.url() + "/1?stream=eu:device:stream:event"), &[]), "");
    assert!(complaint(&output).contains("no such uplinks") && output.status.code() == Some(2), "{output:?}");
}

// Conformance: ChirpStack's Redis stream is read to its end and left as it is
#[test]
fn what_is_wrong_with_redis_is_said_in_a_line_without_the_password() {
    let (Some(redis), dir) = (RedisProcess::start(), with_codec()) else { return };
    let login = b"+info +xrange +xrevrange ~device:*".split(|byte| *byte == b' ');
    let user: Vec<&[u8]> = [&b"ACL"[..], b"SETUSER", b"reader", b"on", b">hunter2"].into_iter().chain(login).collect();
    assert!(redis.call(&user).starts_with("+OK"));
    add(&redis, KEY, b"up", &chirpstack_uplink(&uplink(1, 23.96)));
    redis.call(&[b"SET", b"text", b"x"]);
    fs::write(dir.path().join("password"), "hunter2\n").unwrap();
    fs::write(dir.path().join("wrong"), "hunter3\n").unwrap();
    let reader = redis.url().replace("redis://", "redis://reader@");
    let (found, _) = report(&mut command(dir.path(), &reader, &["--password-file", "password"]), "");
    assert_eq!(found["uplinks"], 1, "{found:#}");
    for (from, arguments, code, reason) in [
        (redis.url() + "?stream=text", &[][..], 2, "the key is no stream"),
        (reader.clone(), &["--password-file", "wrong"], 4, "check `username` and `password_file`"),
        (reader.clone() + "?stream=other", &["--password-file", "password"], 4, "XREVRANGE"),
        (reader.replace("reader@", "reader:hunter2@"), &[], 2, "use --password-file"),
        (redis.url() + "?key=x", &[], 2, "the URL must be like redis://"),
        (redis.url(), &["--ca-certificate", "password"], 2, "must start with rediss://"),
        (
            "redis://localhost:1".to_owned(),
            &[],
            5,
            "cannot read the stream `device:stream:event` of redis://localhost:1",
        ),
    ] {
        let output = run(&mut command(dir.path(), &from, arguments), "");
        let error = complaint(&output);
        assert!(error.contains(reason) && error.lines().count() == 1, "{from}: {error}");
        assert!(output.status.code() == Some(code) && !error.contains("hunter2"), "{from}: {output:?}");
    }
}
