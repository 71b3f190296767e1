//! One message in a real browser: the playground with its bytes.

use super::{
    browsing::{logged_in, shows},
    newest, visitor,
};
use crate::{
    browser::{DESK, driver::Look},
    harness::Network,
};

#[tokio::test]
async fn a_message_is_opened_in_the_playground_with_the_version_that_ran() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[8], 3).await.unwrap();
    let id = newest(&alice).await;
    // A later version must not be the one that is opened.
    alice.set_functions(["function Decoder() { return { later: true }; }", "", ""]).await.unwrap();
    let Some(browser) = logged_in(&network, "message", Look { width: 1280, ..DESK }).await else { return };
    browser.open(&format!("/console/applications/alice-app/messages/{id}")).await;
    browser.look("message").await;
    browser.click("a[href^='/console/playground/#']").await;
    shows(&browser, "*[@id='verdict']", "Failed").await;
    shows(&browser, "*[@id='outcome']", "The decoder failed (line 3, column").await;
    assert_eq!(browser.value("#payloads").await, "3: 08");
    assert_eq!(browser.value("#text").await, super::DECODER);
    browser.look("message-playground").await;
}
