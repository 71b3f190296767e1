//! Corrections of stored results that take longer than one page waits.

use api::handler::SimulatedUplinkMessage;
use futures::stream;

use super::{APPLICATION, MENDED, application, log_in, wait_for_text};
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
        site,
    },
    harness::Network,
};

/// Number of uplinks that take two parts, as 200 are published each second.
const UPLINKS: usize = 1500;

/// A correction in two parts. `go_on` begins the second one.
async fn correct(name: &'static str, look: Look, go_on: impl AsyncFnOnce(&Browser)) {
    let network = Network::start().await;
    let alice = application(&network).await;
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    let app_id = alice.app_id.to_string();
    let uplink = SimulatedUplinkMessage { app_id, dev_id: "dev-2".to_owned(), payload: vec![8, 52], port: 1 };
    let mut answers = alice.handler.simulate_uplinks(stream::iter(vec![uplink; UPLINKS])).await.unwrap();
    while let Some(answer) = answers.next().await.unwrap() {
        assert!(answer.error.is_none(), "{answer:?}");
    }
    alice.set_functions([MENDED, "", ""]).await.unwrap();
    log_in(&browser).await;
    browser.open(&format!("{APPLICATION}/functions/correction")).await;
    browser.wait_for("Correct stored results").await;
    browser.click("button[value=correct]").await;
    go_on(&browser).await;
    // The application has three of its own.
    wait_for_text(&browser, "p", "1,503 uplinks examined: 1,503 corrected").await;
    wait_for_text(&browser, "h2", "Corrected").await;
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn a_long_correction_goes_on_by_itself() {
    correct("console-corrections-desk", DESK, async |_| {}).await;
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn a_long_correction_goes_on_with_a_button_on_a_phone_without_scripts() {
    let look = Look { width: 375, dark: true, scripts: false };
    correct("console-corrections-phone", look, async |browser| {
        wait_for_text(browser, "h2", "Correcting…").await;
        browser.look("console-correcting").await;
        browser.click("button[value=correct]").await;
    })
    .await;
}
