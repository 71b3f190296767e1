//! The quick start of the README in a real browser: from `airlock serve` in an empty directory to a decoded uplink.

use fantoccini::Locator;

use super::{bottom, wait_for_text};
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
    },
    harness::{PASSWORD, server_process::ServerProcess},
};

/// Of the window, in pixels.
const HEIGHT: f64 = 780.0;

/// Opens the printed address, types nothing but a password, and looks at the uplink of the first application.
async fn walk(name: &'static str, look: Look) {
    let dir = tempfile::tempdir().unwrap();
    let process = ServerProcess::start(dir.path());
    let site = process.place("account").to_owned();
    let path = process.first_account_link().unwrap().strip_prefix(&site).unwrap().to_owned();
    let Some(browser) = Browser::start(&site, name, look).await else { return };
    browser.open(&path).await;
    browser.wait_for("Create the first account").await;
    assert!(bottom(&browser, "main form button").await < HEIGHT, "nobody has to scroll to it");
    browser.look("first-account").await;
    let focused = browser.client.execute("return document.activeElement.id;", vec![]).await.unwrap();
    assert_eq!(focused, "password", "nobody has to click it");
    browser.press(PASSWORD).await;
    browser.click("main form button").await;
    browser.wait_for("Live view").await;
    wait_for_text(&browser, "td", "\"temperature\":23.96").await;
    wait_for_text(&browser, "td", "simulated").await;
    assert!(bottom(&browser, "#live tbody tr").await < HEIGHT, "nobody has to scroll to it");
    browser.look("first-uplink").await;

    browser.client.refresh().await.unwrap();
    wait_for_text(&browser, "td", "\"temperature\":23.96").await;
    assert_eq!(
        browser.client.find_all(Locator::Css("#live tbody tr")).await.unwrap().len(),
        1,
        "a reload sends nothing"
    );
    if look.scripts {
        wait_for_text(&browser, "span", "Messages appear here as they arrive.").await;
        let typed = |arguments: &[&str], input: &str| process.type_command(dir.path(), arguments, input);
        typed(&["user", "login", "admin", "--password-stdin"], PASSWORD);
        typed(&["applications", "select", "admin-app"], "");
        typed(&["devices", "simulate", "my-first-device", "0A0037"], "");
        wait_for_text(&browser, "td", "\"temperature\":25.6").await;
    }
    browser.click("main a[href='/console/bridges/new?app_id=admin-app']").await;
    browser.wait_for("Connect a network").await;
    assert_eq!(browser.value("#app_id").await, "admin-app");
    browser.open(&path).await;
    browser.wait_for("Access denied").await;
    browser.look("first-account-again").await;
}

// Conformance: the first account: an operator's, by a link that works once
// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn the_readme_leads_to_a_decoded_uplink() {
    walk("console-first-desk", Look { width: 1280, ..DESK }).await;
}

// Conformance: the first account: an operator's, by a link that works once
// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn the_readme_leads_to_a_decoded_uplink_on_a_phone_without_scripts() {
    walk("console-first-phone", Look { width: 375, dark: true, scripts: false }).await;
}
