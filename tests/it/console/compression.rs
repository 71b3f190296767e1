//! Pages over slow links: what is compressed, and what people do who wait.

use std::collections::BTreeSet;

use crate::{
    browser::{
        DESK,
        console::wait_for_text,
        driver::{Link, Look},
    },
    console::{
        browsing::{ask, logged_in},
        visitor,
    },
    harness::Network,
};

const APPLICATION: &str = "/console/applications/alice-app";
/// As over a weak cellular connection.
const SLOW: Link = Link { offline: false, latency_ms: 400, bytes_per_second: 50_000 };

// Conformance: console: pages over slow links
#[tokio::test]
async fn pages_are_compressed_unless_another_site_asks_for_them() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    for count in 0..50 {
        alice.simulate("dev-1", &[0, count], 1).await.unwrap();
    }
    let path = format!("{APPLICATION}/messages");
    let plain = visitor.get(&path).await.html;
    for (accepted, site, is_packed) in [
        ("gzip, deflate, br", "same-origin", true),
        ("gzip, deflate, br", "none", true),
        // Such a request could be made to have a chosen text in its answer, whose length would then tell of the rest.
        ("gzip, deflate, br", "cross-site", false),
        ("gzip, deflate, br", "same-site", false),
        ("gzip", "same-origin", false),
    ] {
        let response = visitor.open_with(&path, &[("accept-encoding", accepted), ("sec-fetch-site", site)]).await;
        assert_eq!(response.headers().contains_key("content-encoding"), is_packed, "{accepted}, {site}");
        let bytes = response.bytes().await.unwrap();
        if is_packed {
            assert!(bytes.len() * 3 < plain.len(), "{} of {} B", bytes.len(), plain.len());
            let unpacked = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes).unwrap();
            assert!(String::from_utf8(unpacked).unwrap().contains("<h1>Messages</h1>"));
        }
    }
    let asking = [("accept-encoding", "deflate"), ("sec-fetch-site", "same-origin")];
    let events = visitor.open_with(&format!("{APPLICATION}/live/events"), &asking).await;
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    assert!(!events.headers().contains_key("content-encoding"));
    let (_, style) = plain.split_once("rel=\"stylesheet\" href=\"").unwrap();
    let style = visitor.open_with(style.split('"').next().unwrap(), &asking).await;
    assert_eq!(style.headers()["content-encoding"], "deflate");
}

// Conformance: console: pages over slow links
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_link_shows_messages_live_and_sends_what_is_clicked_twice_once() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    for count in 0..60 {
        alice.simulate("dev-1", &[0, count], 1).await.unwrap();
    }
    let phone = Look { width: 375, ..DESK };
    let Some(browser) = logged_in(&network, "slow", phone).await else { return };
    browser.limit_network(SLOW).await;
    browser.open(&format!("{APPLICATION}/messages")).await;
    wait_for_text(&browser, "td", "\"celsius\":0.59").await;
    browser.submit("form.filter", &[("device", "dev-2")], "form.filter button", "Messages").await;
    wait_for_text(&browser, "p", "No messages").await;

    browser.open(&format!("{APPLICATION}/devices/dev-1")).await;
    browser.wait_for("dev-1").await;
    let twice = "const form = document.querySelector(\"form[action$='/downlinks']\");
        form.elements.payload.value = '01';
        const button = form.querySelector('button');
        button.click(); button.click();";
    ask(&browser, twice).await;
    wait_for_text(&browser, "p", "Downlink queued.").await;
    let dev_id = "dev-1".parse().unwrap();
    assert_eq!(alice.handler.list_downlinks(&alice.app_id, &dev_id).await.unwrap().len(), 1);

    browser.open(&format!("{APPLICATION}/live")).await;
    wait_for_text(&browser, "span", "Messages appear here").await;
    for count in 0..20 {
        alice.simulate("dev-1", &[1, count], 1).await.unwrap();
    }
    wait_for_text(&browser, "td", "\"celsius\":2.75").await;
    let payloads = "return [...document.querySelectorAll('#live td.mono:not(.wide)')].map((cell) => cell.textContent);";
    let shown: Vec<String> = serde_json::from_value(ask(&browser, payloads).await).unwrap();
    let (sent, shown): (BTreeSet<String>, BTreeSet<String>) =
        ((0..20).map(|count| format!("01{count:02X}")).collect(), shown.into_iter().collect());
    assert_eq!(shown, sent, "all are there, and none is skipped");
}
