//! The live view's stream of events.

use std::time::Duration;

use reqwest::Response;
use types::Timestamp;

use crate::{
    console::{Visitor, visitor},
    harness::{MESSAGE_TIMEOUT, Network},
};

/// Reads until the text has come.
async fn read_until(response: &mut Response, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        let part = tokio::time::timeout(MESSAGE_TIMEOUT, response.chunk()).await.expect("it comes").unwrap();
        all.push_str(&String::from_utf8_lossy(&part.unwrap_or_else(|| panic!("it has ended: {all}"))));
    }
    all
}

// Conformance: console: live view
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

// Conformance: console: live view
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

// Conformance: console: live view
#[tokio::test]
async fn a_kind_and_a_port_are_filtered_and_what_is_no_filter_is_named() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let path = "/console/applications/alice-app/live";
    let page = visitor.get(&format!("{path}?kind=up&port=2")).await;
    assert!(page.html.contains("live/events?kind=up&#38;port=2\""), "{}", page.html);
    assert!(page.html.contains("<details open>"), "{}", page.html);
    let mut ups = visitor.open(&format!("{path}/events?kind=up&port=2")).await;
    let mut errors = visitor.open(&format!("{path}/events?kind=up%2Ferrors")).await;
    for events in [&mut ups, &mut errors] {
        read_until(events, "event: open").await;
    }
    for (payload, port) in [(&[0, 1][..], 1), (&[0][..], 2), (&[0, 2][..], 2)] {
        alice.simulate("dev-1", payload, port).await.unwrap();
    }
    let text = read_until(&mut ups, r#""payload":"0002""#).await;
    assert!(!text.contains("0001") && !text.contains("too short"), "{text}");
    let text = read_until(&mut errors, "too short").await;
    assert!(!text.contains("celsius"), "{text}");

    for wrong in ["port=x", "device=-"] {
        let page = visitor.get(&format!("{path}?{wrong}")).await;
        assert!(page.status == 400 && page.html.contains("Invalid input"), "{}: {}", page.status, page.html);
        assert!(!page.html.contains("live.js") && !page.html.contains("id=\"live\""), "{}", page.html);
    }
}

// Conformance: console: live view
#[tokio::test]
async fn events_have_times_around_which_history_has_them() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let application = "/console/applications/alice-app";
    let mut events = visitor.open(&format!("{application}/live/events?changes=1")).await;
    let mut messages = visitor.open(&format!("{application}/live/events")).await;
    for events in [&mut events, &mut messages] {
        read_until(events, "event: open").await;
    }
    let downlink = [("form", "bytes"), ("payload", "01"), ("port", "3")];
    visitor.post(&format!("{application}/devices/dev-1/downlinks"), &downlink).await;
    let scheduled = r#"","kind":"down/scheduled""#;
    let text = read_until(&mut events, scheduled).await;
    let (_, time) = text.split_once(scheduled).unwrap().0.rsplit_once(r#""time":""#).unwrap();
    let (time, minute) = (time.parse::<Timestamp>().unwrap(), Duration::from_secs(60));
    let around = format!("since={}&until={}", time.minus(minute), time.plus(minute));
    let path = format!("{application}/messages?device=dev-1&kind=down%2Fscheduled&{around}");
    visitor.until(&path, "<td class=\"when\">").await;

    alice.add_device("dev-2").await;
    alice.handler.delete_device(&alice.app_id, &"dev-2".parse().unwrap()).await.unwrap();
    let text = read_until(&mut events, r#""kind":"delete""#).await;
    assert!(text.contains(r#""kind":"create""#) && !text.contains(r#""time":"""#), "{text}");
    alice.simulate("dev-1", &[0, 200], 1).await.unwrap();
    let text = read_until(&mut messages, "celsius").await;
    assert!(text.contains("down/scheduled") && !text.contains("create") && !text.contains("delete"), "{text}");
}

// Conformance: console: live view
#[tokio::test]
async fn a_text_is_found_behind_what_fits_on_a_line() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let long = "function Decoder(bytes) { return { a: 'x'.repeat(5000), z: 'needle-' + bytes[0] }; }";
    alice.set_functions([long, "", ""]).await.unwrap();
    let mut events = visitor.open("/console/applications/alice-app/live/events?text=needle-2").await;
    read_until(&mut events, "event: open").await;
    alice.simulate("dev-1", &[1], 1).await.unwrap();
    alice.simulate("dev-1", &[2], 1).await.unwrap();
    let text = read_until(&mut events, "…").await;
    assert!(text.contains(r#""payload":"02""#) && !text.contains(r#""payload":"01""#), "{text}");
}

// Conformance: console: live view
#[tokio::test]
async fn a_server_that_stops_says_so_and_does_not_say_that_a_login_has_ended() {
    let network = Network::start().await;
    let (_alice, visitor) = visitor(&network).await;
    let mut events = visitor.open("/console/applications/alice-app/live/events").await;
    read_until(&mut events, "event: open").await;
    let (text, ()) = tokio::join!(read_until(&mut events, "event: stop\ndata: stop"), network.stack.stop());
    assert!(!text.contains("event: end"), "{text}");
}

// Conformance: console: live view
#[tokio::test]
async fn nobody_opens_the_live_views_of_others() {
    let network = Network::with(|settings| settings.console.live_views_max = 8).await;
    let (_alice, visitor) = visitor(&network).await;
    let path = "/console/applications/alice-app/live/events";
    let mut open = visitor.open(path).await;
    read_until(&mut open, "event: open").await;
    assert_eq!(visitor.open(path).await.status(), 429);
    network.owner("bobby").await;
    let bobby = Visitor::logged_in(&network.stack.settings().client.auth_server, "bobby").await;
    bobby.get("/console").await;
    read_until(&mut bobby.open("/console/applications/bobby-app/live/events").await, "event: open").await;
}
