//! The live view's stream of events.

use reqwest::Response;

use super::visitor;
use crate::harness::{MESSAGE_TIMEOUT, Network};

/// Reads until the text has come.
async fn read_until(response: &mut Response, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        let part = tokio::time::timeout(MESSAGE_TIMEOUT, response.chunk()).await.expect("it comes").unwrap();
        all.push_str(&String::from_utf8_lossy(&part.unwrap_or_else(|| panic!("it has ended: {all}"))));
    }
    all
}

#[tokio::test]
async fn messages_and_failures_appear_as_they_come() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let page = visitor.get("/console/applications/alice-app/live?device=dev-1").await;
    assert!(
        page.html.contains("data-events=\"/console/applications/alice-app/live/events?device=dev%2D1\""),
        "{}",
        page.html
    );
    let mut events = visitor.open("/console/applications/alice-app/live/events?device=dev-1").await;
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    read_until(&mut events, "event: open").await;
    alice.simulate("dev-1", &[0, 200], 1).await.unwrap();
    let text = read_until(&mut events, "celsius").await;
    assert!(text.contains(r#""device":"dev-1""#) && text.contains(r#""payload":"00C8""#), "{text}");
    alice.simulate("dev-1", &[1], 1).await.unwrap();
    read_until(&mut events, "too short").await;
}

#[tokio::test]
async fn the_server_leaves_out_what_is_not_wanted() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let mut events = visitor.open("/console/applications/alice-app/live/events?failed=1").await;
    read_until(&mut events, "event: open").await;
    alice.simulate("dev-1", &[0, 200], 1).await.unwrap();
    alice.simulate("dev-1", &[1], 1).await.unwrap();
    let text = read_until(&mut events, "too short").await;
    assert!(!text.contains("celsius"), "{text}");
}

#[tokio::test]
async fn no_more_views_are_open_than_may_be() {
    let network = Network::with(|settings| settings.console.live_views_max = 1).await;
    let (_alice, visitor) = visitor(&network).await;
    let path = "/console/applications/alice-app/live/events";
    let mut open = visitor.open(path).await;
    read_until(&mut open, "event: open").await;
    assert_eq!(visitor.open(path).await.status(), 429);
}
