//! The live view in a tab that is open for longer than its login lasts, or than its server runs.

use std::{process::Stdio, time::Duration};

use crate::{
    browser::{
        DESK,
        console::{log_in, wait_for_text},
        driver::{Browser, Link},
    },
    console::{DECODER, browsing::logged_in, visitor, visitor::Visitor},
    harness::{
        Network,
        server_process::{ServerProcess, serve},
    },
};

/// Longer than a token is valid, and shorter than a session of the account site.
const EXPIRES: Duration = Duration::from_secs(2 * 3600);
const LIVE: &str = "/console/applications/alice-app/live";
const UPLINKS: &str = "/console/applications/alice-app/devices/dev-1/uplinks";

/// Another login of the same user sends an uplink while the page does not hear it.
async fn send_unheard(account: &str, payload: &str) {
    let visitor = Visitor::logged_in(account, "alice").await;
    visitor.get("/console").await;
    let page = visitor.post(UPLINKS, &[("payload", payload), ("port", "1")]).await;
    assert!(page.html.contains("Simulated uplink sent."), "{}", page.html);
}

/// Follows the button below the rows, which leads to what the page has missed.
async fn find_missed(browser: &Browser, text: &str) {
    wait_for_text(browser, "a[@id='older']", "All messages").await;
    browser.click("#older").await;
    browser.wait_for("Messages").await;
    wait_for_text(browser, "td", text).await;
}

// Conformance: console: live view
#[tokio::test]
async fn a_live_view_whose_login_has_expired_says_so_and_goes_on_once_it_is_reloaded() {
    let (network, clock) = Network::with_clock(|settings| settings.broker.check_interval_ms = 100).await;
    let (alice, _visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "live-end", DESK).await else { return };
    browser.open(LIVE).await;
    wait_for_text(&browser, "span", "Messages appear here").await;
    alice.simulate("dev-1", &[0, 200], 1).await.unwrap();
    wait_for_text(&browser, "td", "celsius").await;

    clock.advance(EXPIRES);
    // The stream ends, or the page is refused when it opens the stream again.
    wait_for_text(&browser, "span", "Your login has ended. Reload the page to continue.").await;
    wait_for_text(&browser, "td", "celsius").await;
    browser.look("ended").await;
    send_unheard(&network.stack.settings().client.auth_server, "1234").await;
    find_missed(&browser, "46.6").await;
    browser.open(LIVE).await;
    wait_for_text(&browser, "span", "Messages appear here").await;
}

// Conformance: console: live view
#[tokio::test(flavor = "multi_thread")]
async fn a_live_view_waits_for_its_server_to_start_again_and_says_what_it_missed() {
    let dir = tempfile::tempdir().unwrap();
    let process = ServerProcess::start(dir.path());
    let alice = process.owner(dir.path(), "alice").await;
    alice.add_device("dev-1").await;
    alice.set_functions([DECODER, "", ""]).await.unwrap();
    let account = process.place("account").to_owned();
    let Some(browser) = Browser::start(&account, "live-restart", DESK).await else { return };
    log_in(&browser).await;
    browser.open(LIVE).await;
    wait_for_text(&browser, "span", "Messages appear here").await;
    alice.simulate("dev-1", &[0, 200], 1).await.unwrap();
    wait_for_text(&browser, "td", "celsius").await;

    process.stop();
    wait_for_text(&browser, "span", "Reconnecting").await;
    browser.limit_network(Link::NONE).await;
    let address = account.strip_prefix("http://").unwrap();
    let mut command = serve(dir.path());
    let process = ServerProcess::spawn(command.env("AIRLOCK_LISTEN__ACCOUNT", address).stderr(Stdio::null()));
    process.announcement(dir.path()).await;
    send_unheard(&account, "1234").await;
    browser.limit_network(Link::FAST).await;
    wait_for_text(&browser, "span", "Reconnected. Messages that arrived meanwhile are under All messages.").await;
    wait_for_text(&browser, "td", "celsius").await;
    send_unheard(&account, "0bb8").await;
    wait_for_text(&browser, "td", "\"celsius\":30").await;
    browser.look("restarted").await;
    find_missed(&browser, "46.6").await;
    process.stop();
}
