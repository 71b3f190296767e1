//! Webhooks are changed in place: what a change leaves out stays, and nobody replaces what they have not seen.

use futures::future::join_all;
use serde_json::{Value, json};

use super::{SECRET, bytes, call, receiver::Receiver, set, start};
use crate::harness::{Network, Owner};

async fn patch(network: &Network, owner: &Owner, change: Value) -> (u16, Value) {
    call(&network.handler_http(), owner, "PATCH", "/my-hook", change).await
}

/// A change that must be made; returns the webhook as the API shows it.
async fn changed(network: &Network, owner: &Owner, change: Value) -> Value {
    let (status, webhook) = patch(network, owner, change).await;
    assert_eq!(status, 200, "{webhook}");
    webhook
}

// Conformance: A webhook is changed in place
#[tokio::test(flavor = "multi_thread")]
async fn what_a_change_leaves_out_stays_and_null_removes() {
    let (network, mut receiver) = (start(|_| ()).await, Receiver::start().await);
    let owner = network.owner("changes").await;
    owner.add_device("dev-1").await;
    let (before, after) = (format!("{}/before", receiver.url()), format!("{}/after", receiver.url()));
    let headers = json!({"Authorization": "Bearer a", "X-Key": "b"});
    let webhook = json!({"url": before, "events": ["up"], "headers": headers, "secret": SECRET});
    set(&network, &owner, "my-hook", webhook).await;

    let shown = changed(&network, &owner, json!({"url": after, "headers": {"x-key": "c"}})).await;
    assert_eq!((&shown["url"], &shown["events"], &shown["is_signed"]), (&json!(after), &json!(["up"]), &json!(true)));
    assert_eq!(shown["header_names"], json!(["Authorization", "x-key"]));
    let got = call(&network.handler_http(), &owner, "GET", "/my-hook", json!({})).await.1;
    assert_eq!(got, shown, "with the same revision");
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    let request = receiver.next().await;
    let sent = ["authorization", "x-key"].map(|name| request.header(name));
    assert_eq!((request.path.as_str(), sent), ("/after", ["Bearer a", "c"]));
    assert!(request.header("webhook-signature").starts_with("v1,"), "the secret stays");

    let removed = changed(&network, &owner, json!({"events": null, "headers": {"X-KEY": null}, "secret": null})).await;
    assert_eq!(
        (&removed["url"], &removed["events"], &removed["is_signed"]),
        (&json!(after), &json!([]), &json!(false))
    );
    assert_eq!(removed["header_names"], json!(["Authorization"]));
    assert_eq!(changed(&network, &owner, json!({"headers": null})).await["header_names"], json!([]));

    for (change, reason) in [
        (json!({"url": null}), "a webhook must have one"),
        (json!({"events": ["uplink"]}), "there are up"),
        (json!({"secret": "x"}), "openssl rand"),
        (json!({"headers": {"Host": "x"}}), "set by the server"),
    ] {
        let (status, response) = patch(&network, &owner, change).await;
        assert!(status == 400 && response["error"].as_str().unwrap().contains(reason), "{response}");
    }
    network.stack.stop().await;
}

// Conformance: A webhook is changed in place
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_webhook_goes_to_its_new_address_without_the_headers_of_the_old_one() {
    let (network, mut away, mut other) = (start(|_| ()).await, Receiver::start().await, Receiver::start().await);
    let owner = network.owner("moves").await;
    owner.add_device("dev-1").await;
    let webhook = json!({"url": away.url(), "events": ["up"], "headers": {"Authorization": "Bearer a"}});
    set(&network, &owner, "my-hook", webhook).await;
    away.stop().await;
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    let (status, response) = patch(&network, &owner, json!({"url": other.url()})).await;
    let reason = response["error"].as_str().unwrap();
    assert!(status == 400 && reason.contains("`Authorization` does not stay"), "{status}: {reason}");
    let moved = json!({"url": other.url(), "headers": {"authorization": "Bearer b"}});
    changed(&network, &owner, moved).await;
    let request = other.next().await;
    assert_eq!((request.header("authorization"), &request.json()["payload_raw"]), ("Bearer b", &json!("AQ==")));
    owner.simulate("dev-1", &[2], 1).await.unwrap();
    assert_eq!(bytes(&mut other, 1).await, ["Ag=="]);
    network.stack.stop().await;
}

// Conformance: A webhook is changed in place
#[tokio::test(flavor = "multi_thread")]
async fn of_changes_that_start_from_the_same_revision_one_is_made() {
    let network = start(|_| ()).await;
    let owner = network.owner("editors").await;
    set(&network, &owner, "my-hook", json!({"url": "https://example.com/0"})).await;
    set(&network, &owner, "other-hook", json!({"url": "https://example.com/"})).await;
    let opened = call(&network.handler_http(), &owner, "GET", "/my-hook", json!({})).await.1["revision"].clone();
    // The revision of a webhook says nothing about the others.
    set(&network, &owner, "other-hook", json!({"url": "https://example.com/other"})).await;
    let editors = (1..=4).map(|number| {
        let url = format!("https://example.com/{number}");
        patch(&network, &owner, json!({"revision": opened, "url": url}))
    });
    let (made, refused): (Vec<_>, Vec<_>) = join_all(editors).await.into_iter().partition(|(status, _)| *status == 200);
    assert_eq!((made.len(), refused.len()), (1, 3), "{refused:?}");
    assert!(refused.iter().all(|(status, _)| *status == 409), "{refused:?}");
    let now = call(&network.handler_http(), &owner, "GET", "/my-hook", json!({})).await.1;
    assert_eq!(now, made[0].1);

    // A webhook that is set again as it was is another one, too.
    set(&network, &owner, "my-hook", json!({"url": now["url"]})).await;
    let (status, response) = patch(&network, &owner, json!({"revision": now["revision"], "events": ["up"]})).await;
    assert!(status == 409 && response["error"].as_str().unwrap().contains("get it again"), "{response}");
    assert_eq!(changed(&network, &owner, json!({"events": ["up"]})).await["events"], json!(["up"]));
    network.stack.stop().await;
}
