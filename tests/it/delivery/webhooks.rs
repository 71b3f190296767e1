//! Webhooks: messages over HTTP, whatever their receivers do.

mod changes;
mod grants;
pub(crate) mod receiver;
mod restarts;
mod warnings;

use serde_json::{Value, json};

use self::receiver::{Answer, Receiver};
use crate::harness::{Network, Owner};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Calls the webhooks of an application.
pub(crate) async fn call(base: &str, owner: &Owner, method: &str, path: &str, body: Value) -> (u16, Value) {
    owner.ask(base, method, &format!("/webhooks{path}"), body).await
}

/// A network whose webhooks may have addresses of this machine.
async fn start(change: impl FnOnce(&mut outputs::Settings)) -> Network {
    Network::with(|settings| {
        settings.output.delivery.allow_private_addresses = true;
        change(&mut settings.output.delivery);
    })
    .await
}

async fn set(network: &Network, owner: &Owner, id: &str, webhook: Value) {
    let (status, response) = call(&network.handler_http(), owner, "PUT", &format!("/{id}"), webhook).await;
    assert_eq!(status, 200, "{response}");
}

/// The first byte of each uplink that came, until `count` have.
async fn bytes(receiver: &mut Receiver, count: usize) -> Vec<Value> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        bytes.push(receiver.next().await.json()["payload_raw"].clone());
    }
    bytes
}

// Conformance: A webhook gets the body of MQTT, with path, headers and signature
#[tokio::test(flavor = "multi_thread")]
async fn a_message_arrives_with_its_path_headers_and_signature() {
    let (network, mut receiver) = (start(|_| ()).await, Receiver::start().await);
    let owner = network.owner("signed").await;
    owner.add_device("dev-1").await;
    let url = format!("{}/hooks/{{app_id}}/{{dev_id}}?event={{event}}", receiver.url());
    let headers = json!({"Authorization": "Bearer secret-of-mine", "x-device": "{dev_id}"});
    let webhook = json!({"url": url, "events": ["up"], "headers": headers, "secret": SECRET});
    let mut shown = json!({
        "id": "my-hook", "url": url, "events": ["up"], "header_names": ["Authorization", "x-device"], "is_signed": true
    });
    let base = network.handler_http();
    let (status, set) = call(&base, &owner, "PUT", "/my-hook", webhook).await;
    shown["revision"] = set["revision"].clone();
    assert_eq!((status, &set), (200, &shown));
    assert_eq!(call(&base, &owner, "GET", "/my-hook", json!({})).await, (200, shown.clone()), "without secrets");
    assert_eq!(call(&base, &owner, "GET", "", json!({})).await, (200, json!({"webhooks": [shown]})));

    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[7], 3).await.unwrap();
    let request = receiver.next().await;
    let (_, published) = crate::harness::next(&mut listener).await;
    assert_eq!((request.method.as_str(), &*request.path), ("POST", "/hooks/signed-app/dev-1?event=up"));
    assert_eq!(request.json(), published, "the same body as over MQTT");
    for (name, value) in [
        ("content-type", "application/json"),
        ("authorization", "Bearer secret-of-mine"),
        ("x-device", "dev-1"),
        ("airlock-application", "signed-app"),
        ("airlock-device", "dev-1"),
        ("airlock-event", "up"),
    ] {
        assert_eq!(request.header(name), value);
    }
    let (id, time) = (request.header("webhook-id"), request.header("webhook-timestamp"));
    let signed = format!("{id}.{time}.{}", request.text);
    assert_eq!(request.header("webhook-signature"), signature(&signed));

    assert_eq!(call(&base, &owner, "DELETE", "/my-hook", json!({})).await, (200, json!({})));
    assert_eq!(call(&base, &owner, "GET", "/my-hook", json!({})).await.0, 404);
    owner.simulate("dev-1", &[8], 3).await.unwrap();
    network.stack.stop().await;
    assert!(receiver.is_empty(), "events that are not wanted, and those of a deleted webhook, are not sent");
}

/// The signature of a text, by another implementation.
fn signature(text: &str) -> String {
    let script = "import base64, hashlib, hmac, sys\n\
                  key = base64.b64decode(sys.argv[1].removeprefix('whsec_'))\n\
                  mac = hmac.new(key, sys.argv[2].encode(), hashlib.sha256).digest()\n\
                  print('v1,' + base64.b64encode(mac).decode(), end='')";
    let output = std::process::Command::new("python3").args(["-c", script, SECRET, text]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

// Conformance: Retries in order; dead letters are listed and sent again
#[tokio::test(flavor = "multi_thread")]
async fn failures_are_repeated_in_order_and_refusals_can_be_sent_again() {
    let (network, mut receiver) = (start(|_| ()).await, Receiver::start().await);
    let owner = network.owner("again").await;
    owner.add_device("dev-1").await;
    set(&network, &owner, "my-hook", json!({"url": receiver.url(), "events": ["up"]})).await;
    receiver.answer([
        Answer::Status(500),
        Answer::Status(429),
        Answer::Status(200),
        Answer::Status(400),
        Answer::Redirect,
    ]);
    for byte in [1, 2, 3, 4] {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    let [first, second, third] = [receiver.next().await, receiver.next().await, receiver.next().await];
    assert_eq!((&first.text, &first.text), (&second.text, &third.text), "until it is taken");
    assert_eq!(first.header("webhook-id"), third.header("webhook-id"));
    assert_eq!(bytes(&mut receiver, 3).await, ["Ag==", "Aw==", "BA=="]);

    let base = network.handler_http();
    let dead = async || call(&base, &owner, "GET", "/my-hook/dead-letters", json!({})).await.1;
    let mut letters = dead().await;
    while letters["total"] != 2 {
        letters = dead().await;
    }
    let letters = letters["dead_letters"].as_array().unwrap().clone();
    assert_eq!(letters[0]["reason"], "400 Bad Request: as the test says");
    assert_eq!(letters[0]["body"]["payload_raw"], "Ag==");
    assert_eq!((&letters[0]["dev_id"], &letters[0]["attempts"]), (&json!("dev-1"), &json!(1)));
    assert_eq!(letters[1]["reason"], "307 Temporary Redirect", "redirects are not followed");
    let resend = async |body| call(&base, &owner, "POST", "/my-hook/dead-letters/resend", body).await;
    assert_eq!(resend(json!({"ids": [letters[1]["id"]]})).await, (200, json!({"resent": 1})));
    assert_eq!(bytes(&mut receiver, 1).await, ["Aw=="]);
    assert_eq!(resend(json!({})).await, (200, json!({"resent": 1})));
    assert_eq!(bytes(&mut receiver, 1).await, ["Ag=="]);
    assert_eq!(dead().await["total"], 0);
    network.stack.stop().await;
}

// Conformance: A receiver that never answers holds up nobody else
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_never_answers_holds_up_nobody_else() {
    let (network, mut frozen) = (start(|_| ()).await, Receiver::start().await);
    let (owner, other) = (network.owner("frozen").await, network.owner("other").await);
    let (mut sibling, mut working) = (Receiver::start().await, Receiver::start().await);
    frozen.answer([Answer::Never; 20]);
    set(&network, &owner, "frozen", json!({"url": frozen.url(), "events": ["up"]})).await;
    set(&network, &owner, "sibling", json!({"url": sibling.url(), "events": ["up"]})).await;
    set(&network, &other, "working", json!({"url": working.url(), "events": ["up"]})).await;
    owner.add_device("dev-1").await;
    other.add_device("dev-1").await;
    owner.simulate("dev-1", &[0], 1).await.unwrap();
    frozen.next().await;
    for byte in 1..=5 {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
        other.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    bytes(&mut sibling, 6).await;
    bytes(&mut working, 5).await;
    assert!(frozen.is_empty(), "it still has the first one");
    network.stack.stop().await;
}

// Conformance: Queues are bounded: the oldest are dropped, and the receiver is told
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_drops_the_oldest_and_the_receiver_is_told() {
    let (network, mut receiver) = (start(|settings| settings.queue_messages_max = 3).await, Receiver::start().await);
    let owner = network.owner("full").await;
    owner.add_device("dev-1").await;
    set(&network, &owner, "my-hook", json!({"url": receiver.url(), "events": ["up"]})).await;
    receiver.stop().await;
    for byte in 1..=8 {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    receiver.start_again().await;
    // The first request after the outage is the oldest message that is left, or says what was lost.
    let (mut bytes, mut dropped) = (Vec::new(), None);
    while bytes.len() < 3 || dropped.is_none() {
        let request = receiver.next().await;
        match request.header("airlock-event") {
            "dropped" => dropped = Some(request.json()),
            _ => bytes.push(request.json()["payload_raw"].clone()),
        }
    }
    assert_eq!(bytes, ["Bg==", "Bw==", "CA=="]);
    assert_eq!(dropped, Some(json!({"messages": 5})));
    network.stack.stop().await;
}

// Conformance: Private addresses are refused, also behind a name
#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_also_behind_a_name() {
    let (network, receiver) = (Network::start().await, Receiver::start().await);
    let owner = network.owner("private").await;
    owner.add_device("dev-1").await;
    let base = network.handler_http();
    let (status, response) = call(&base, &owner, "PUT", "/my-hook", json!({"url": receiver.url()})).await;
    assert_eq!(status, 400);
    assert!(response["error"].as_str().unwrap().contains("no public address"), "{response}");
    let url = receiver.url().replace("127.0.0.1", "localhost");
    set(&network, &owner, "my-hook", json!({"url": url, "events": ["up"]})).await;
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    let mut letters = json!({"total": 0});
    while letters["total"] == 0 {
        letters = call(&base, &owner, "GET", "/my-hook/dead-letters", json!({})).await.1;
    }
    let reason = letters["dead_letters"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("localhost has no public address"), "{reason}");
    assert!(receiver.is_empty());
    network.stack.stop().await;
}
