//! The live view in a real browser while more uplinks arrive than anybody can read.

use std::time::Duration;

use api::handler::SimulatedUplinkMessage;
use futures::stream;
use serde_json::json;
use server::rate_limit::RateLimit;
use testing::soon;
use tokio::time::sleep;

use crate::{
    browser::{DESK, console::wait_for_text, driver::Browser},
    console::{
        browsing::{ask, logged_in},
        visitor,
    },
    harness::{Network, Owner},
};

/// Uplinks in each of two halves.
const HALF: u64 = 10_000;
const ROWS_MAX: u64 = 200;
/// By how much the heap of the page may grow, after garbage is collected. Rows for all uplinks would take more.
const HEAP_GROWTH_BYTES_MAX: u64 = 4 << 20;
/// The nodes of a page with all rows. Each row has about 20.
const NODES_MAX: u64 = 10_000;
/// Between two looks at the page.
const PAUSE: Duration = Duration::from_millis(100);

/// Counts each row that the page has ever shown, and the most that it has had at once.
const COUNT_ROWS: &str = "const rows = document.querySelector('#live tbody');
    window.counted = { shown: 0, most: 0 };
    new MutationObserver((changes) => {
        for (const change of changes) window.counted.shown += change.addedNodes.length;
        window.counted.most = Math.max(window.counted.most, rows.rows.length);
    }).observe(rows, { childList: true });";
/// The counts on the page: how many were skipped, and how many wait while it is paused.
const READ: &str = "const number = (id) => Number(document.getElementById(id).textContent.match(/\\d+/)?.[0] ?? 0);
    const rows = document.querySelector('#live tbody').rows.length;
    return [window.counted.shown, number('skipped'), number('pause'), window.counted.most, rows];";
/// Keeps the stream of events of the next page where a test finds it.
const KEEP_SOURCE: &str =
    "window.EventSource = class extends EventSource { constructor(url) { super(url); window.source = this; } };";
/// Where the button below the rows leads, and what it says.
const READ_OLDER: &str =
    "const older = document.getElementById('older'); return [older.pathname + older.search, older.textContent];";

/// The rows of the page, and its texts.
#[derive(Debug)]
struct Seen {
    shown: u64,
    skipped: u64,
    waiting: u64,
    most_rows: u64,
    rows: u64,
}

impl Seen {
    async fn now(browser: &Browser) -> Self {
        let [shown, skipped, waiting, most_rows, rows] = serde_json::from_value(ask(browser, READ).await).unwrap();
        Self { shown, skipped, waiting, most_rows, rows }
    }

    /// Waits until the page has accounted for so many uplinks.
    async fn all(browser: &Browser, count: u64) -> Self {
        soon("an account of all uplinks", async {
            loop {
                let seen = Self::now(browser).await;
                let accounted = seen.shown + seen.skipped + seen.waiting;
                assert!(accounted <= count, "more than {count}: {seen:?}");
                if accounted == count {
                    return seen;
                }
                sleep(PAUSE).await;
            }
        })
        .await
    }
}

/// Sends uplinks as fast as the handler takes them.
async fn flood(alice: &Owner, count: u64) {
    let app_id = alice.app_id.to_string();
    let uplink = move |number: u64| SimulatedUplinkMessage {
        app_id: app_id.clone(),
        dev_id: "dev-1".to_owned(),
        payload: (number as u16).to_be_bytes().to_vec(),
        port: 1,
    };
    let uplinks: Vec<_> = (0..count).map(uplink).collect();
    let mut answers = alice.handler.simulate_uplinks(stream::iter(uplinks)).await.unwrap();
    let mut answered = 0;
    while let Some(answer) = answers.next().await.unwrap() {
        assert!(answer.error.is_none(), "{answer:?}");
        answered += 1;
    }
    assert_eq!(answered, count);
}

/// The heap in bytes, and the number of nodes, without garbage.
async fn memory(browser: &Browser) -> (u64, u64) {
    browser.tell("HeapProfiler.collectGarbage", json!({})).await;
    let heap = browser.tell("Runtime.getHeapUsage", json!({})).await;
    let nodes = browser.tell("Memory.getDOMCounters", json!({})).await;
    (heap["value"]["usedSize"].as_f64().unwrap() as u64, nodes["value"]["nodes"].as_u64().unwrap())
}

/// Where the button below the rows leads, and what it says.
async fn older(browser: &Browser) -> (String, String) {
    serde_json::from_value(ask(browser, READ_OLDER).await).unwrap()
}

/// A network that takes as many uplinks as come.
async fn quick_network() -> Network {
    Network::with(|settings| {
        let limits = &mut settings.handler.rate_limits;
        (limits.client, limits.application) = (RateLimit::new(1_000_000, 1), RateLimit::new(1_000_000, 1));
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_uplink_is_shown_or_counted_and_the_page_stays_small() {
    let network = quick_network().await;
    let (alice, _visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "live-load", DESK).await else { return };
    browser.open("/console/applications/alice-app/live").await;
    wait_for_text(&browser, "span", "Messages appear here").await;
    ask(&browser, COUNT_ROWS).await;
    let (heap_before, _) = memory(&browser).await;

    flood(&alice, HALF).await;
    let seen = Seen::all(&browser, HALF).await;
    assert!(seen.rows == ROWS_MAX && seen.waiting == 0, "{seen:?}");
    // While the view is paused, it keeps as many as it would show, and counts the rest.
    browser.click("#pause").await;
    flood(&alice, HALF).await;
    let seen = Seen::all(&browser, 2 * HALF).await;
    assert!(seen.waiting == ROWS_MAX && seen.skipped >= HALF - ROWS_MAX, "{seen:?}");
    wait_for_text(&browser, "p", &format!("{} messages were skipped", seen.skipped)).await;
    browser.click("#pause").await;
    let seen = Seen::all(&browser, 2 * HALF).await;
    assert!(seen.waiting == 0 && seen.rows == ROWS_MAX && seen.most_rows == ROWS_MAX, "{seen:?}");

    let (heap, nodes) = memory(&browser).await;
    assert!(heap < heap_before + HEAP_GROWTH_BYTES_MAX, "{heap_before} B became {heap} B");
    assert!(nodes < NODES_MAX, "{nodes} nodes");
    browser.look("live").await;
}

// Conformance: console: live view
#[tokio::test(flavor = "multi_thread")]
async fn what_was_skipped_or_missed_is_in_history_below_the_rows() {
    let network = quick_network().await;
    let (alice, visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "live-gap", DESK).await else { return };
    browser.tell("Page.addScriptToEvaluateOnNewDocument", json!({"source": KEEP_SOURCE})).await;
    browser.open("/console/applications/alice-app/live?device=dev-1").await;
    wait_for_text(&browser, "span", "Messages appear here").await;
    ask(&browser, COUNT_ROWS).await;
    alice.simulate("dev-1", &[0, 1], 1).await.unwrap();
    Seen::all(&browser, 1).await;
    let (path, text) = older(&browser).await;
    assert!(path.contains("&until=") && text == "Older messages", "{path}: {text}");

    // More come while it is paused than may wait. All of them are newer than the only row.
    browser.click("#pause").await;
    flood(&alice, ROWS_MAX + 20).await;
    let seen = Seen::all(&browser, 1 + ROWS_MAX + 20).await;
    assert!(seen.skipped >= 20, "{seen:?}");
    let (path, text) = older(&browser).await;
    assert_eq!(text, "All messages");
    let page = visitor.get(&format!("{path}&field=fields.celsius+%3D+0.05")).await;
    assert!(page.html.contains("{&#34;celsius&#34;:0.05}"), "{path}: {}", page.html);

    browser.click("#clear").await;
    let (path, text) = older(&browser).await;
    assert!(!path.contains("until=") && text == "Older messages", "{path}: {text}");
    browser.click("#pause").await;
    wait_for_text(&browser, "td", "celsius").await;
    assert!(older(&browser).await.0.contains("&until="));
    ask(&browser, "window.source.dispatchEvent(new Event('error'));").await;
    wait_for_text(&browser, "span", "Connection lost").await;
    ask(&browser, "window.source.dispatchEvent(new Event('open'));").await;
    wait_for_text(&browser, "span", "Reconnected. Messages that arrived meanwhile are under All messages").await;
    let (path, text) = older(&browser).await;
    assert!(!path.contains("until=") && text == "All messages", "{path}: {text}");
}
