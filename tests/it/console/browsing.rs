//! A user who is logged in to the console in a real browser.

use fantoccini::Locator;
use serde_json::Value;

use crate::{
    browser::driver::{Browser, Look},
    harness::{MESSAGE_TIMEOUT, Network, PASSWORD},
};

/// A browser in which Alice is logged in; none where there is no browser.
pub(super) async fn logged_in(network: &Network, name: &'static str, look: Look) -> Option<Browser> {
    let browser = Browser::start(&network.stack.settings().client.auth_server, name, look).await?;
    browser.open("/console").await;
    browser.wait_for("Log in").await;
    let fields = [("username", "alice"), ("password", PASSWORD)];
    browser.submit("main form", &fields, "main form button", "Applications").await;
    Some(browser)
}

/// Waits until an element has a text.
pub(super) async fn shows(browser: &Browser, element: &str, text: &str) {
    let path = format!("//{element}[contains(normalize-space(), \"{text}\")]");
    let found = browser.client.wait().at_most(MESSAGE_TIMEOUT).for_element(Locator::XPath(&path)).await;
    if found.is_err() {
        panic!("no {text:?} in {element}: {}", browser.client.source().await.unwrap());
    }
}

/// Returns what a script in the page returns.
pub(super) async fn ask(browser: &Browser, script: &str) -> Value {
    browser.client.execute(script, vec![]).await.unwrap()
}
