//! Forms that are sent when the login has expired.

use std::{sync::Arc, time::Duration};

use testing::ManualClock;
use types::Clock;

use super::{
    bridges::{away, bridged},
    visitor,
    visitor::Visitor,
};
use crate::harness::{Network, Owner};

/// Longer than a token is valid, and shorter than a session of the account site.
const EXPIRES: Duration = Duration::from_secs(2 * 3600);

async fn versions(alice: &Owner) -> usize {
    alice.handler.list_versions(&alice.app_id).await.unwrap().len()
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn what_was_typed_comes_back_after_the_login() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (alice, visitor) = visitor(&network).await;
    visitor.get("/console/applications/alice-app/functions").await;
    assert_eq!(versions(&alice).await, 1);
    clock.advance(EXPIRES);
    let typed = "function Decoder() { return { typed: 'for an hour' }; }";
    let form = [("do", "save"), ("base", "1"), ("payload_format", "custom"), ("decoder", typed), ("note", "slowly")];
    let page = visitor.post("/console/applications/alice-app/functions", &form).await;
    assert!(page.html.contains("may not have been saved"), "{}: {}", page.path, page.html);
    assert_eq!((page.typed("decoder").as_str(), page.value("note").as_str()), (typed, "slowly"));
    let form = [("do", "save"), ("base", &page.value("base")), ("payload_format", "custom"), ("decoder", typed)];
    let saved = visitor.post("/console/applications/alice-app/functions", &form).await;
    assert!(saved.html.contains("Saved.") && saved.typed("decoder") == typed, "{}", saved.html);

    clock.advance(EXPIRES);
    let form = [("form", "bytes"), ("payload", "0102"), ("port", "9")];
    let page = visitor.post("/console/applications/alice-app/devices/dev-1/downlinks", &form).await;
    assert!(page.html.contains("not been sent yet") && page.typed("payload") == "0102", "{}", page.html);

    clock.advance(EXPIRES);
    let form = [("do", "correct"), ("version", "2"), ("device", "dev-1"), ("since", "7d")];
    let page = visitor.post("/console/applications/alice-app/functions/correction", &form).await;
    assert!(page.html.contains("This was interrupted"), "{}: {}", page.path, page.html);
    assert_eq!((page.value("device"), page.value("since")), ("dev-1".to_owned(), "7d".to_owned()));
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn a_correction_goes_on_where_the_login_ended() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = visitor(&network).await;
    visitor.get("/console/applications/alice-app/functions").await;
    clock.advance(EXPIRES);
    let form = [("do", "correct"), ("version", "2"), ("device", "dev-1"), ("after", "01"), ("examined", "720000")];
    let page = visitor.post("/console/applications/alice-app/functions/correction", &form).await;
    assert!(page.html.contains("This was interrupted"), "{}: {}", page.path, page.html);
    assert_eq!((page.value("after"), page.value("examined")), ("01".to_owned(), "720000".to_owned()));
    assert!(page.html.contains("720,000 uplinks examined") && page.html.contains(">Go on</button>"), "{}", page.html);
    assert!(!page.html.contains("go_on"), "nothing is changed before somebody presses the button");
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn a_long_function_outlives_its_login_and_what_somebody_else_saves_meanwhile() {
    const PATH: &str = "/console/applications/alice-app/functions";
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (alice, visitor) = visitor(&network).await;
    let opened = visitor.get(PATH).await.value("base");
    alice.set_functions(["function Decoder() { return { theirs: 1 }; }", "", ""]).await.unwrap();
    clock.advance(EXPIRES);
    let typed = format!("function Decoder() {{ return {{ mine: 1 }}; }}\n// \u{202e}{}", "x".repeat(200_000));
    let save = async |base: &str| {
        let form = [("do", "save"), ("base", base), ("payload_format", "custom"), ("decoder", typed.as_str())];
        visitor.post(PATH, &form).await
    };
    let draft = save(&opened).await;
    assert!(draft.path.starts_with("/console/drafts/") && draft.typed("decoder") == typed, "{}", draft.path);
    let refused = save(&draft.value("base")).await;
    assert!(refused.status == 409 && refused.typed("decoder") == typed, "{}", refused.status);
    let (_, told) = refused.html.split_once("Someone else has saved version 2").unwrap();
    assert!(told.split("<form").next().unwrap().contains("theirs"), "the difference is beside it");
    // Whoever has seen that replaces it.
    let saved = save(&refused.value("base")).await;
    assert!(saved.html.contains("Saved.") && saved.value("base") == "3" && saved.typed("decoder") == typed);
}

// Conformance: console: webhooks created, tested, resent, deleted
#[tokio::test]
async fn a_draft_of_a_webhook_has_no_secrets() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = visitor(&network).await;
    clock.advance(EXPIRES);
    let form = [
        ("id", "hook-of-mine"),
        ("url", "https://example.com"),
        ("headers", "x: token-of-mine"),
        ("secret", "key-of-mine"),
    ];
    let page = visitor.post("/console/applications/alice-app/webhooks", &form).await;
    assert!(page.path.starts_with("/console/drafts/") && page.html.contains("hook-of-mine"), "{}", page.html);
    assert!(page.html.contains("Type them again"), "{}", page.html);
    assert!(!page.html.contains("token-of-mine") && !page.html.contains("key-of-mine"), "{}", page.html);
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn a_share_that_was_typed_comes_back_after_the_login() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = visitor(&network).await;
    let path = "/console/applications/alice-app/functions";
    let decoder = "function Decoder() { return { tried: 1 }; }";
    let form = [("do", "share"), ("base", "1"), ("payload_format", "custom"), ("decoder", decoder), ("share", "5")];
    visitor.post(path, &form).await;
    clock.advance(EXPIRES);
    let form = [("do", "share"), ("version", "2"), ("share", "7"), ("margin", "1.5"), ("uplinks_min", "33")];
    let page = visitor.post(&format!("{path}/candidate"), &form).await;
    assert!(page.path.starts_with("/console/drafts/"), "{}", page.path);
    for (name, typed) in [("share", "7"), ("margin", "1.5"), ("uplinks_min", "33")] {
        assert_eq!(page.value(name), typed, "{}", page.html);
    }
}

// Conformance: console: the form of *Connect a network* comes back after the login
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_was_entered_comes_back_to_operators_without_its_secrets() {
    let clock: Arc<ManualClock> = ManualClock::at(server::system::SystemClock.now());
    let (network, visitor) = bridged(clock.clone(), |_, _| away("alice-app")).await;
    network.owner("bobby").await;
    let bobby = Visitor::logged_in(&network.stack.settings().client.auth_server, "bobby").await;
    bobby.get("/console").await;
    clock.advance(EXPIRES);
    let shown = [
        ("api_url", "https://eu1.example.com"),
        ("mqtt_url", "mqtts://eu1.example.com:8883"),
        ("username", "me"),
        ("application", "app1@tenant1"),
        ("app_id", "alice-app"),
    ];
    let secret = [("kind", "things-stack"), ("api_key", "key-of-mine"), ("password", "word-of-mine")];
    let form = [&shown[..], &secret].concat();
    let other = bobby.post("/console/bridges/new", &form).await;
    assert!(!other.path.starts_with("/console/drafts/"), "{}", other.path);
    let page = visitor.post("/console/bridges/new", &form).await;
    assert!(page.path.starts_with("/console/drafts/"), "{}", page.path);
    for page in [visitor.get(&page.path).await, page] {
        assert!(
            page.html.contains("The network was not tried") && page.html.contains("Enter the API key"),
            "{}",
            page.html
        );
        assert!(page.html.contains("value=\"things-stack\" checked"), "{}", page.html);
        assert_eq!(shown.map(|(name, _)| page.value(name)), shown.map(|(_, typed)| typed.to_owned()));
        assert!(!page.html.contains("key-of-mine") && !page.html.contains("word-of-mine"), "{}", page.html);
        assert_eq!(bobby.get(&page.path).await.status, 404);
    }
    network.stack.stop().await;
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn nobody_else_sees_a_draft() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = visitor(&network).await;
    clock.advance(EXPIRES);
    let form = [("do", "save"), ("decoder", "// secret")];
    let page = visitor.post("/console/applications/alice-app/functions", &form).await;
    assert!(page.path.starts_with("/console/drafts/") && page.html.contains("// secret"), "{}", page.html);
    network.owner("bobby").await;
    let bobby = Visitor::logged_in(&network.stack.settings().client.auth_server, "bobby").await;
    let other = bobby.get(&page.path).await;
    assert!(other.status == 404 && !other.html.contains("// secret"), "{}", other.html);
}

#[tokio::test]
async fn whoever_logs_out_when_the_login_has_expired_is_logged_out() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = visitor(&network).await;
    clock.advance(EXPIRES);
    let page = visitor.post("/console/logout", &[]).await;
    assert!(!page.path.starts_with("/console"), "{}", page.path);
}
