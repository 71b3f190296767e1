//! The page of bridges while it is updated: rows that come, go and move do not take the focus or the state of others.

use std::sync::Arc;

use serde_json::{Value, json};
use server::system::SystemClock;

use super::{CONNECTED, PATH, away, bridged, entry};
use crate::{
    browser::{DESK, console::wait_for_text, driver::Browser},
    console::browsing::{ask, logged_in},
    networks::harness::{ChirpStack, DEVICE},
};

/// The element that has the focus, with the region around it, and whether its row is the one that was marked.
const FOCUS: &str = "const now = document.activeElement; \
     return [now.textContent, now.closest('[role=region]')?.getAttribute('aria-label') ?? '', now.closest('tr')?.marked ?? ''];";

/// Lets the next updates of the page show this.
async fn answer(browser: &Browser, html: &str) {
    let script = "const page = `<div id=\"refreshed\">${arguments[0]}</div>`; \
                  window.fetch = () => Promise.resolve(new Response(page));";
    browser.client.execute(script, vec![json!(html)]).await.unwrap();
}

/// A part with a table of these links, a text at its end, and something before it.
fn part(links: &[&str], before: &str, text: &str) -> String {
    let row = |link: &&str| format!("<tr data-key=\"{link}\"><td><a href=\"#{link}\">{link}</a></td></tr>");
    let rows: String = links.iter().map(row).collect();
    format!(
        "<section data-key=\"part\">{before}<div data-key=\"links\" role=\"region\" aria-label=\"Links\" tabindex=\"0\">\
         <table><tbody>{rows}</tbody></table></div><details><summary>More</summary><p>{text}</p></details></section>"
    )
}

// Conformance: console: bridges, kept up to date, and trials of networks
#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_comes_above_does_not_take_the_focus_of_a_row() {
    let Some(mut chirpstack) = ChirpStack::start().await else { return };
    let (network, visitor) = bridged(Arc::new(SystemClock), |dir, app_id| entry(&chirpstack, dir, app_id)).await;
    visitor.until(PATH, CONNECTED).await;
    let Some(browser) = logged_in(&network, "bridges-rows", DESK).await else { return };
    browser.open(PATH).await;
    wait_for_text(&browser, "dd", "0 of 0 handed over").await;
    ask(
        &browser,
        "const link = document.querySelector('#refreshed td a'); link.focus(); link.closest('tr').marked = 'route';",
    )
    .await;
    let focused = ask(&browser, FOCUS).await;
    assert_eq!((&focused[0], &focused[2]), (&json!("alice-app"), &json!("route")), "{focused}");
    assert!(focused[1].as_str().unwrap().starts_with("Routes of "), "{focused}");
    chirpstack.send(DEVICE, "up", &json!({"deviceInfo": {"devEui": "a300000000000009"}})).await;
    wait_for_text(&browser, "h3", "Not handed over").await;
    assert_eq!(ask(&browser, FOCUS).await, focused);
    network.stack.stop().await;
}

// Conformance: console: bridges, kept up to date, and trials of networks
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_come_go_and_move_stay_themselves() {
    let (network, _visitor) = bridged(Arc::new(SystemClock), |_, app_id| away(app_id.as_str())).await;
    let Some(browser) = logged_in(&network, "bridges-moves", DESK).await else { return };
    browser.open(PATH).await;
    browser.wait_for("Bridges").await;
    answer(&browser, &part(&["a", "b", "c"], "", "state-1")).await;
    wait_for(&browser, "state-1").await;
    ask(
        &browser,
        "document.querySelector('details').open = true; const link = document.querySelector('a[href=\"#c\"]'); \
         link.focus(); link.closest('tr').marked = 'row';",
    )
    .await;
    answer(&browser, &part(&["x", "c", "a", "b"], "<div tabindex=\"0\">new</div>", "state-2")).await;
    wait_for(&browser, "state-2").await;
    assert_eq!(ask(&browser, FOCUS).await, json!(["c", "Links", "row"]));
    assert_eq!(state(&browser).await, json!([["x", "c", "a", "b"], true]));

    answer(&browser, &part(&["b", "a"], "", "state-3")).await;
    wait_for(&browser, "state-3").await;
    assert_eq!(ask(&browser, FOCUS).await, json!(["ba", "Links", ""]), "what was around it has the focus");
    assert_eq!(state(&browser).await, json!([["b", "a"], true]));
    network.stack.stop().await;
}

/// Waits for a text at the end of the part, also while it is folded.
async fn wait_for(browser: &Browser, text: &str) {
    wait_for_text(browser, "p", text).await;
}

/// The rows in their order, and whether what was opened is open.
async fn state(browser: &Browser) -> Value {
    let script = "return [[...document.querySelectorAll('#refreshed tr')].map((row) => row.textContent), \
                  document.querySelector('#refreshed details').open];";
    ask(browser, script).await
}
