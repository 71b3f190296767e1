//! A user who is logged in to the console in a real browser.

use serde_json::Value;

use crate::{
    browser::{
        console::log_in,
        driver::{Browser, Look},
    },
    harness::Network,
};

/// A browser in which Alice is logged in; none where there is no browser.
pub(super) async fn logged_in(network: &Network, name: &'static str, look: Look) -> Option<Browser> {
    let browser = Browser::start(&network.stack.settings().client.auth_server, name, look).await?;
    log_in(&browser).await;
    Some(browser)
}

/// Returns what a script in the page returns.
pub(super) async fn ask(browser: &Browser, script: &str) -> Value {
    browser.client.execute(script, vec![]).await.unwrap()
}
