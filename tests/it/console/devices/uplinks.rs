//! Uplinks that somebody sends from the page of a device, as if the device had sent them.

use std::time::Duration;

use api::{history::Query, rest::account::NewUser};
use client::account::AccountClient;
use types::{ApplicationRight, Secret};

use crate::{
    console::{visitor, visitor::Visitor},
    harness::{Network, Owner, PASSWORD},
};

const DEVICE: &str = "/console/applications/alice-app/devices/dev-1";
const PATH: &str = "/console/applications/alice-app/devices/dev-1/uplinks";

/// Port and payload of the stored uplinks, the newest first.
async fn stored(alice: &Owner) -> Vec<(u32, Vec<u8>)> {
    let query = Query { app_id: alice.app_id.to_string(), kind: "up".to_owned(), ..Query::default() };
    let records = alice.handler.list_records(query).await.unwrap().records;
    records.into_iter().map(|record| (record.port, record.payload)).collect()
}

// Conformance: console: uplinks simulated from the page of a device
#[tokio::test]
async fn an_uplink_is_sent_from_the_page_of_its_device_and_is_marked() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    assert!(visitor.get(DEVICE).await.html.contains("Simulate an uplink"));
    let page = visitor.post(PATH, &[("payload", "09 5c"), ("port", "7")]).await;
    assert_eq!((page.status, page.path.as_str()), (200, DEVICE), "{}", page.html);
    for part in ["Simulated uplink sent.", ">simulated</span>", "095C", "{&#34;celsius&#34;:23.96}"] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    assert!(!page.html.contains("<th scope=\"col\">Device</th>"), "all rows are of this device: {}", page.html);
    // As on the command line, a port is not needed.
    visitor.post(PATH, &[("payload", "0a0b"), ("port", "")]).await;
    assert_eq!(stored(&alice).await, [(1, vec![0x0A, 0x0B]), (7, vec![0x09, 0x5C])]);
}

// Conformance: console: uplinks simulated from the page of a device
#[tokio::test]
async fn an_uplink_that_is_refused_stays_in_its_form() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let long = "00".repeat(300);
    for (payload, port) in [("<b>", "1"), ("", "1"), ("01", "<b>"), ("01", "256"), (long.as_str(), "1")] {
        let page = visitor.post(PATH, &[("payload", payload), ("port", port)]).await;
        assert_eq!(page.status, 400, "{}", page.html);
        assert!(page.html.contains("role=\"alert\"") && !page.html.contains("<b>"), "{}", page.html);
        assert!(page.html.contains("<a href=\"#uplink-payload\">"), "{}", page.html);
        assert_eq!(page.typed("uplink-payload"), payload);
        assert_eq!(page.typed("payload"), "", "the other form is as it was");
    }
    let unknown = PATH.replace("dev-1", "none");
    assert_eq!(visitor.post(&unknown, &[("payload", "01")]).await.status, 404);
    assert_eq!(visitor.post_from(Some("https://evil.example"), PATH, &[("payload", "01")]).await.status, 403);
    assert!(stored(&alice).await.is_empty());
}

// Conformance: console: uplinks simulated from the page of a device
#[tokio::test]
async fn who_may_only_read_messages_sends_no_uplink() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    let site = &network.stack.settings().client.auth_server;
    let account = AccountClient::new(site).unwrap();
    let (username, email) = ("bobby".parse().unwrap(), "bobby@example.com".to_owned());
    account.register_user(&NewUser { username, email, password: Secret::new(PASSWORD) }).await.unwrap();
    let rights = [ApplicationRight::MessagesUpRead];
    account.set_collaborator(&alice.token, &alice.app_id, &"bobby".parse().unwrap(), &rights).await.unwrap();
    let bobby = Visitor::logged_in(site, "bobby").await;
    bobby.get("/console").await;
    let page = bobby.post(PATH, &[("payload", "01")]).await;
    assert!(page.status == 404 && page.html.contains("or you may not see it"), "{}", page.html);
    assert!(stored(&alice).await.is_empty());
}

// Conformance: console: uplinks simulated from the page of a device
#[tokio::test]
async fn an_uplink_that_was_typed_comes_back_after_the_login() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = visitor(&network).await;
    // Longer than a token is valid, and shorter than a session of the account site.
    clock.advance(Duration::from_secs(2 * 3600));
    let page = visitor.post(PATH, &[("payload", "0a 0b"), ("port", "9")]).await;
    assert!(page.html.contains("may not have been sent"), "{}: {}", page.path, page.html);
    assert_eq!(page.typed("uplink-payload"), "0a 0b");
    assert!(page.html.contains("name=\"port\" value=\"9\""), "{}", page.html);
    assert!(!page.html.contains("<td>up"), "{}", page.html);
}
