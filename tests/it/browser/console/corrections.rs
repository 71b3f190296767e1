//! Corrections of stored results that take longer than one page waits.

use api::handler::SimulatedUplinkMessage;
use futures::stream;

use super::{APPLICATION, MENDED, application, log_in, wait_for_text};
use crate::{
    browser::{DESK, driver::Browser, site},
    harness::Network,
};

/// Number of uplinks that take two parts, as 200 are published each second.
const UPLINKS: usize = 1500;

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn a_long_correction_goes_on_by_itself() {
    let network = Network::start().await;
    let alice = application(&network).await;
    let Some(browser) = Browser::start(site(&network), "console-corrections", DESK).await else { return };
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
    wait_for_text(&browser, "h2", "Correcting…").await;
    browser.look("console-correcting").await;
    // Three more are those of the application.
    wait_for_text(&browser, "p", "1,503 uplinks examined: 1,503 corrected").await;
    wait_for_text(&browser, "h2", "Corrected").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
