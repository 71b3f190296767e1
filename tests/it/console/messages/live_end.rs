//! The live view in a tab that is open for longer than its login lasts.

use std::time::Duration;

use crate::{
    browser::{DESK, console::wait_for_text},
    console::{browsing::logged_in, visitor},
    harness::Network,
};

/// Longer than a token is valid, and shorter than a session of the account site.
const EXPIRES: Duration = Duration::from_secs(2 * 3600);

// Conformance: console: live view
#[tokio::test]
async fn a_live_view_whose_login_has_expired_says_so_and_goes_on_once_it_is_reloaded() {
    let (network, clock) = Network::with_clock(|settings| settings.broker.check_interval_ms = 100).await;
    let (alice, _visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "live-end", DESK).await else { return };
    browser.open("/console/applications/alice-app/live").await;
    wait_for_text(&browser, "span", "Messages appear here").await;
    alice.simulate("dev-1", &[0, 200], 1).await.unwrap();
    wait_for_text(&browser, "td", "celsius").await;

    clock.advance(EXPIRES);
    // The stream ends, or the page is refused when it opens the stream again.
    wait_for_text(&browser, "span", "Reload the page").await;
    wait_for_text(&browser, "td", "celsius").await;
    browser.look("ended").await;
    browser.client.refresh().await.unwrap();
    wait_for_text(&browser, "span", "Messages appear here").await;
}
