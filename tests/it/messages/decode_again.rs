//! Stored uplinks are decoded again: what changes is reported, kept beside the original, and published.

mod limits;

use std::fs;

use airlock::serve::{Service, Stack};
use serde_json::{Value, json};
use testing::RedisProcess;
use types::Kind;

use crate::{
    delivery::webhooks::{call, receiver::Receiver},
    harness::{Network, Owner, environment, next},
    processes::outages::soon,
};

/// Forgets the sign of a temperature, and cannot read short payloads.
const WRONG: &str = "function Decoder(bytes) {
  if (bytes.length < 2) throw new Error('too short');
  return { celsius: bytes[0], list: [{ raw: bytes[1] }] };
}";
/// Does better with both, and fails on 99.
const RIGHT: &str = "function Decoder(bytes) {
  if (bytes[0] === 99) throw new Error('no sensor');
  return { list: [{ raw: bytes.length < 2 ? 0 : bytes[1] }], celsius: bytes[0] << 24 >> 24 };
}";

/// Decodes uplinks again; returns the status and the handler's reports.
pub(crate) async fn decode(network: &Network, owner: &Owner, body: Value) -> (u16, Vec<Value>) {
    decode_at(&network.handler_http(), owner, body).await
}

/// The same on the handler at this URL.
async fn decode_at(base: &str, owner: &Owner, body: Value) -> (u16, Vec<Value>) {
    let url = format!("{base}/applications/{}/history/decode", owner.app_id);
    let request = reqwest::Client::new().post(url).header("authorization", owner.token.to_header());
    let response = request.json(&body).send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The sum of what it reports.
async fn report(network: &Network, owner: &Owner, body: Value) -> Value {
    let (status, reports) = decode(network, owner, body).await;
    assert_eq!((status, reports.len()), (200, 2), "{reports:?}");
    assert_eq!(reports[1], json!({"done": true}));
    let mut report = reports[0].clone();
    let days = report["days"].take();
    for verdict in ["equal", "already_corrected", "changed", "newly_decoded", "newly_failing", "still_failing"] {
        let of_days = days.as_object().into_iter().flatten().filter_map(|(_, day)| day[verdict].as_u64()).sum::<u64>();
        assert_eq!(of_days, report[verdict].as_u64().unwrap_or_default(), "{verdict} of {days}");
    }
    for fuel in ["fuel_before", "fuel_after"] {
        report[fuel].take();
    }
    report["next"].take();
    report.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    report
}

/// An owner of two devices, whose uplinks were equal, wrong, failing and such as will fail.
async fn owner(network: &Network) -> Owner {
    let owner = network.owner("past").await;
    for dev_id in ["warm", "cold"] {
        owner.add_device(dev_id).await;
    }
    owner.set_functions([WRONG, "", ""]).await.unwrap();
    for (dev_id, payload) in [("warm", &[21, 1][..]), ("cold", &[255, 2]), ("warm", &[7]), ("cold", &[99, 3])] {
        owner.simulate(dev_id, payload, 1).await.unwrap();
    }
    owner
}

/// The records of uplinks, oldest first.
async fn records(network: &Network, owner: &Owner) -> Vec<Value> {
    let (_, page) = owner.ask(&network.handler_http(), "GET", "/history?kind=up", Value::Null).await;
    page["records"].as_array().unwrap().iter().rev().cloned().collect()
}

/// Checks that a record has these corrections, over REST and gRPC.
async fn check_corrections(network: &Network, owner: &Owner, record: &Value, corrections: &[&Value]) {
    let id = record["id"].as_str().unwrap();
    let (_, whole) = owner.ask(&network.handler_http(), "GET", &format!("/history/{id}"), Value::Null).await;
    let found = whole["corrections"].as_array().cloned().unwrap_or_default();
    let names = ["id", "revision", "version", "recorded"];
    let expected = corrections.iter().map(|correction| {
        let members = names.iter().map(|name| ((*name).to_owned(), correction[*name].clone()));
        Value::Object(members.collect())
    });
    assert_eq!(found, expected.collect::<Vec<_>>(), "{whole}");
    let found = owner.handler.get_record(&owner.app_id, id).await.unwrap().corrections;
    let found = found.iter().map(|correction| (json!(correction.id), json!(correction.revision)));
    let expected = corrections.iter().map(|correction| (correction["id"].clone(), correction["revision"].clone()));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test(flavor = "multi_thread")]
async fn other_functions_show_what_they_would_change_and_change_nothing() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let before = records(&network, &owner).await;
    let sent = json!({"functions": {"payload_format": "custom", "decoder": RIGHT}});
    let mut seen = report(&network, &owner, sent.clone()).await;
    let id = |index: usize| &before[index]["id"];
    let expected = json!({
        "examined": 4, "equal": 1, "changed": 1, "newly_decoded": 1, "newly_failing": 1,
        "fields": {"fields.celsius": {"count": 1, "example": {
            "id": id(1), "dev_id": "cold", "before": 255, "after": -1
        }}},
    });
    let failures = seen.as_object_mut().unwrap().remove("failures").unwrap();
    assert_eq!(seen, expected);
    let (reason, failure) = failures.as_object().unwrap().iter().next().unwrap();
    assert!(reason.contains("no sensor"), "{reason}");
    assert_eq!(failure, &json!({"count": 1, "id": id(3), "dev_id": "cold"}));
    assert_eq!(records(&network, &owner).await, before);
    // A preview runs the newest of each device, and compares with the functions that are live.
    let preview = json!({"functions": sent["functions"], "compare_live": true, "per_device": 1});
    let seen = report(&network, &owner, preview).await;
    assert_eq!((&seen["examined"], &seen["newly_decoded"], &seen["newly_failing"]), (&json!(2), &json!(1), &json!(1)));
    network.stack.stop().await;
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test(flavor = "multi_thread")]
async fn corrections_are_kept_beside_originals_and_published_once() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let before = records(&network, &owner).await;
    owner.set_functions([RIGHT, "", ""]).await.unwrap();
    let mut listener = owner.listen(&network).await;
    let body = json!({"write": true, "publish": true, "publish_per_s": 1000});
    let seen = report(&network, &owner, body.clone()).await;
    assert_eq!((&seen["written"], &seen["published"], &seen["newly_failing"]), (&json!(2), &json!(2), &json!(1)));
    for (original, celsius) in [(&before[1], -1), (&before[2], 7)] {
        let (topic, message) = next(&mut listener).await;
        assert_eq!(topic, format!("{}/up", original["dev_id"].as_str().unwrap()));
        assert_eq!(message["payload_fields"]["celsius"], celsius, "{message}");
        assert_eq!((&message["corrects"], &message["revision"]), (&original["id"], &json!(1)), "{message}");
        assert_eq!((&message["is_retry"], &message["payload_raw"]), (&json!(true), &original["payload_raw"]));
        assert_eq!(message["metadata"]["time"], original["time"], "when it was received");
    }
    let after = records(&network, &owner).await;
    assert_eq!(after[..4], before, "originals stay");
    let corrections: Vec<_> = after[4..].iter().map(|record| (&record["corrects"], &record["revision"])).collect();
    assert_eq!(corrections, [(&before[1]["id"], &json!(1)), (&before[2]["id"], &json!(1))]);
    // The second time there is nothing left to correct: an uplink is compared with its newest revision.
    let seen = report(&network, &owner, body.clone()).await;
    assert_eq!(seen["examined"], 4);
    let counts = (&seen["equal"], &seen["already_corrected"], &seen["written"]);
    assert_eq!(counts, (&json!(1), &json!(2), &Value::Null), "{seen}");
    // Functions that change their mind make a revision more.
    owner.set_functions([WRONG, "", ""]).await.unwrap();
    report(&network, &owner, body).await;
    let (_, message) = next(&mut listener).await;
    assert_eq!((&message["payload_fields"]["celsius"], &message["revision"]), (&json!(255), &json!(2)), "{message}");
    let after = records(&network, &owner).await;
    check_corrections(&network, &owner, &before[1], &[&after[6], &after[4]]).await;
    check_corrections(&network, &owner, &before[2], &[&after[5]]).await;
    check_corrections(&network, &owner, &after[4], &[]).await;
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn corrections_that_nobody_wants_are_kept_and_counted_apart() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    owner.set_functions([RIGHT, "", ""]).await.unwrap();
    let seen = report(&network, &owner, json!({"write": true, "publish": true, "publish_per_s": 1000})).await;
    assert_eq!(
        (&seen["written"], &seen["unwanted"], &seen["published"]),
        (&json!(2), &json!(2), &Value::Null),
        "{seen}"
    );
    network.stack.stop().await;
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test(flavor = "multi_thread")]
async fn the_same_functions_give_the_same_to_the_last_unit_of_fuel() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    owner.set_functions([RIGHT, "", ""]).await.unwrap();
    owner.simulate("warm", &[200, 1], 1).await.unwrap();
    let (_, reports) = decode(&network, &owner, json!({"verify": true})).await;
    assert_eq!(
        (&reports[0]["examined"], &reports[0]["equal"], &reports[0]["still_failing"]),
        (&json!(5), &json!(5), &Value::Null),
        "{reports:?}"
    );
    assert_eq!(reports[0]["fuel_before"], reports[0]["fuel_after"]);
    network.stack.stop().await;
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_after_an_uplink_and_stays_within_what_is_asked_for() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let before = records(&network, &owner).await;
    for (body, examined) in [
        (json!({"after": before[1]["id"]}), 2),
        (json!({"dev_id": "warm"}), 2),
        (json!({"failed": true}), 1),
        (json!({"field": "fields.celsius > 90"}), 2),
        (json!({"port": 1, "version": 1}), 4),
    ] {
        assert_eq!(report(&network, &owner, body.clone()).await["examined"], examined, "{body}");
    }
    for (body, status) in [
        (json!({"version": 9}), 404),
        (json!({"after": "yesterday"}), 400),
        (json!({"verify": true, "write": true}), 400),
        (json!({"per_device": 1, "write": true}), 400),
        (json!({"recorded_limits": true, "write": true}), 400),
        (json!({"recorded_limits": true, "compare_live": true}), 400),
        (json!({"publish": true}), 400),
        (json!({"functions": {"decoder": "function ("}}), 400),
        (json!({"functions": {"payload_format": "unknown"}}), 400),
        (json!({"others": true}), 400),
    ] {
        assert_eq!(decode(&network, &owner, body.clone()).await.0, status, "{body}");
    }
    network.stack.stop().await;
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test(flavor = "multi_thread")]
async fn each_thing_that_decoding_again_does_takes_its_right() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let url = format!("{}/applications/{}/history/decode", network.handler_http(), owner.app_id);
    for (right, body) in [
        ("messages:up:r", json!({})),
        ("settings", json!({})),
        ("messages:up:w", json!({"write": true, "publish": true})),
    ] {
        let key = owner.key_with(&network, right).await;
        let request = reqwest::Client::new().post(&url).header("authorization", format!("Key {}", key.expose()));
        let response = request.json(&body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 403, "{right}: {}", response.text().await.unwrap());
    }
    let response = reqwest::Client::new().post(&url).json(&json!({})).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 401, "{:?}", Kind::Unauthenticated);
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_corrected_by_one_call_at_a_time() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    owner.set_functions([RIGHT, "", ""]).await.unwrap();
    let mut listener = owner.listen(&network).await;
    let slow = json!({"write": true, "publish": true, "publish_per_s": 1});
    let url = format!("{}/applications/{}/history/decode", network.handler_http(), owner.app_id);
    let request = reqwest::Client::new().post(url).header("authorization", owner.token.to_header()).json(&slow);
    let first = tokio::spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    // One is published, and the other waits for the next second.
    next(&mut listener).await;
    assert_eq!(decode(&network, &owner, json!({"write": true})).await.0, 409);
    assert_eq!(decode(&network, &owner, json!({})).await.0, 200, "what changes nothing may run beside it");
    first.await.unwrap();
    let seen = report(&network, &owner, json!({"write": true})).await;
    assert_eq!(seen["written"], Value::Null, "{seen}");
    network.stack.stop().await;
}

/// The number of files of history.
fn files(network: &Network, owner: &Owner) -> usize {
    let days = network.stack.settings().data_dir.join(format!("history/app={}", owner.app_id));
    fs::read_dir(days).unwrap().map(|day| fs::read_dir(day.unwrap().path()).unwrap().count()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_correct_an_application_one_after_the_other() {
    let Some(redis) = RedisProcess::start() else { return };
    let network = Network::on(&redis, |_| {}).await;
    let owner = owner(&network).await;
    owner.set_functions([RIGHT, "", ""]).await.unwrap();
    // It has the same directory of history, too.
    let other = Stack::start(network.stack.settings().clone(), Some(Service::Handler), environment()).await.unwrap();
    let base = format!("http://{}", other.handler_http_address().unwrap());
    let mut listener = owner.listen(&network).await;
    let (here, token) = (network.handler_http(), owner.token.to_header());
    let url = format!("{here}/applications/{}/history/decode", owner.app_id);
    let slow = json!({"write": true, "publish": true, "publish_per_s": 1});
    let request = reqwest::Client::new().post(url).header("authorization", token).json(&slow);
    let first = tokio::spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    next(&mut listener).await;
    let (status, refusal) = decode_at(&base, &owner, json!({"write": true})).await;
    assert_eq!(status, 409, "{refusal:?}");
    assert!(refusal[0].to_string().contains("another handler runs a correction"), "{refusal:?}");
    first.await.unwrap();
    // Once it may, the other handler sees what the first one has recorded.
    let corrected = async || match decode_at(&base, &owner, json!({"write": true})).await {
        (409, _) => Value::Null,
        (_, reports) => json!([&reports[0]["examined"], &reports[0]["already_corrected"], &reports[0]["written"]]),
    };
    soon(json!([4, 2, null]), corrected).await;
    // What corrects nothing moves nothing to files: everybody's new messages would go with it.
    let before = files(&network, &owner);
    owner.simulate("warm", &[5], 1).await.unwrap();
    for base in [&here, &base] {
        let status = async || decode_at(base, &owner, json!({"write": true})).await.0;
        soon(200, status).await;
    }
    assert_eq!(files(&network, &owner), before);
    other.stop().await;
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_gets_no_corrections_and_loses_nothing_live() {
    let network = Network::with(|settings| {
        settings.output.delivery.allow_private_addresses = true;
        settings.output.delivery.queue_messages_max = 4;
    })
    .await;
    let owner = network.owner("full").await;
    owner.add_device("cold").await;
    owner.set_functions([WRONG, "", ""]).await.unwrap();
    let mut receiver = Receiver::start().await;
    receiver.stop().await;
    let webhook = json!({"url": receiver.url(), "events": ["up"]});
    assert_eq!(call(&network.handler_http(), &owner, "PUT", "/dead", webhook).await.0, 200);
    for byte in 0..4 {
        owner.simulate("cold", &[255, byte], 1).await.unwrap();
    }
    let mut listener = owner.listen(&network).await;
    let functions = json!({"payload_format": "custom", "decoder": RIGHT});
    let (_, reports) = decode(&network, &owner, json!({"functions": functions, "write": true, "publish": true})).await;
    assert_eq!(reports.last(), Some(&json!({"done": true})), "{reports:?}");
    let sum = |name: &str| reports.iter().filter_map(|report| report[name].as_u64()).sum::<u64>();
    assert_eq!((sum("changed"), sum("written"), sum("refused"), sum("published")), (4, 4, 4, 0), "{reports:?}");
    let reason = &reports[0]["receivers"]["webhook dead"]["reason"];
    assert_eq!(reason, "its queue has room for live messages only", "{reports:?}");
    for _ in 0..4 {
        assert_eq!(next(&mut listener).await.1["payload_fields"]["celsius"], -1, "others get them");
    }
    receiver.start_again().await;
    for byte in 0..4 {
        let message = receiver.next().await.json();
        let seen = (&message["payload_fields"]["list"][0]["raw"], &message["corrects"]);
        assert_eq!(seen, (&json!(byte), &Value::Null), "all that were live");
    }
    network.stack.stop().await;
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test(flavor = "multi_thread")]
async fn a_part_ends_with_the_report_after_its_time() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    owner.set_functions([RIGHT, "", ""]).await.unwrap();
    // The second correction is published after a second.
    let part = json!({"write": true, "publish": true, "publish_per_s": 1, "seconds_max": 1});
    let (_, reports) = decode(&network, &owner, part).await;
    assert_eq!(reports[1], json!({"is_cut": true, "done": true}), "{reports:?}");
    let rest = decode(&network, &owner, json!({"after": reports[0]["next"], "seconds_max": 1})).await;
    assert_eq!(rest, (200, vec![json!({"done": true})]));
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test(flavor = "multi_thread")]
async fn a_correction_whose_caller_hangs_up_is_not_published_twice() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    owner.set_functions([RIGHT, "", ""]).await.unwrap();
    let mut listener = owner.listen(&network).await;
    let url = format!("{}/applications/{}/history/decode", network.handler_http(), owner.app_id);
    let request = reqwest::Client::new().post(url).header("authorization", owner.token.to_header());
    let slow = json!({"write": true, "publish": true, "publish_per_s": 1});
    let response = tokio::spawn(request.json(&slow).send());
    let (_, first) = next(&mut listener).await;
    // It waits for the next second now.
    response.abort();
    _ = response.await;
    let fast = json!({"write": true, "publish": true, "publish_per_s": 1000});
    let reports = loop {
        match decode(&network, &owner, fast.clone()).await {
            (409, _) => tokio::task::yield_now().await,
            (status, reports) => break (status, reports),
        }
    };
    let (_, second) = next(&mut listener).await;
    assert_ne!(first["corrects"], second["corrects"], "{reports:?}");
}
