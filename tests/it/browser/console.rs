//! The console in a real browser: from a failed message to mended functions, and the live view.

mod corrections;
mod devices;
mod first_run;
mod operator;

use std::time::Duration;

use fantoccini::{Locator, key::Key};
use serde_json::json;
use tokio::time::sleep;

use super::{
    DESK,
    driver::{Browser, Look},
    site,
};
use crate::{
    delivery::webhooks::{
        call,
        receiver::{Answer, Receiver},
    },
    harness::{MESSAGE_TIMEOUT, Network, Owner, PASSWORD},
};

const BROKEN: &str = "function Decoder(bytes, port) {
  if (bytes.length < 2) {
    throw new Error('payload has ' + bytes.length + ' bytes, expected 2');
  }
  return { celsius: (bytes[0] << 8 | bytes[1]) / 100, note: '<b>bold</b>' };
}";
const MENDED: &str = "function Decoder(bytes) { return { celsius: bytes.length }; }";
const APPLICATION: &str = "/console/applications/alice-app";

/// An application with messages, the last of which failed.
async fn application(network: &Network) -> Owner {
    let alice = network.owner("alice").await;
    for device in ["dev-1", "dev-2"] {
        alice.add_device(device).await;
    }
    alice.set_functions([BROKEN, "", ""]).await.unwrap();
    for payload in [&[8, 52][..], &[8, 60], &[9]] {
        alice.simulate("dev-1", payload, 1).await.unwrap();
    }
    alice
}

pub(crate) async fn log_in(browser: &Browser) {
    browser.open("/console").await;
    browser.wait_for("Log in").await;
    let fields = [("username", "alice"), ("password", PASSWORD)];
    browser.submit("main form", &fields, "main form button", "Applications").await;
}

/// Waits for a text below an element.
pub(crate) async fn wait_for_text(browser: &Browser, selector: &str, text: &str) {
    let path = format!("//{selector}[contains(normalize-space(), '{text}')]");
    let found = browser.client.wait().at_most(MESSAGE_TIMEOUT).for_element(Locator::XPath(&path)).await;
    if found.is_err() {
        panic!("no {text:?}: {}", browser.client.source().await.unwrap());
    }
}

/// The lower end of an element.
async fn bottom(browser: &Browser, selector: &str) -> f64 {
    let element = browser.client.find(Locator::Css(selector)).await.unwrap();
    let (_, top, _, height) = element.rectangle().await.unwrap();
    top + height
}

/// Opens a page of the application until it has a text.
async fn open_until(browser: &Browser, page: &str, text: &str) {
    browser.open(&format!("{APPLICATION}/{page}")).await;
    while !browser.client.source().await.unwrap().contains(text) {
        sleep(Duration::from_millis(100)).await;
        browser.open(&format!("{APPLICATION}/{page}")).await;
    }
}

/// New functions for a share of the devices, until they are promoted.
async fn share(name: &'static str, look: Look) {
    let network = Network::start().await;
    let alice = application(&network).await;
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    log_in(&browser).await;
    browser.open(&format!("{APPLICATION}/functions")).await;
    browser.wait_for("Functions").await;
    let fields = [("decoder", MENDED), ("note", "<b>short</b> payloads, too"), ("share", "50")];
    browser.submit("form.code", &fields, "form.code button[value=share]", "Functions").await;
    wait_for_text(&browser, "h2", "Gradual rollout of version 2").await;
    for device in ["dev-1", "dev-2"] {
        alice.simulate(device, &[9], 1).await.unwrap();
    }
    browser.open(&format!("{APPLICATION}/functions")).await;
    wait_for_text(&browser, "h2", "Gradual rollout of version 2").await;
    browser.look("console-share").await;
    browser.open(&format!("{APPLICATION}/versions/2")).await;
    browser.wait_for("Version 2").await;
    browser.look("console-share-version").await;
    browser.open(&format!("{APPLICATION}/functions")).await;
    browser.submit("#share form", &[("share", "90")], "#share button[value=share]", "Functions").await;
    wait_for_text(&browser, "p", "Share changed.").await;
    browser.click("#share button[value=abandon]").await;
    wait_for_text(&browser, "p", "Abandoned.").await;
    browser.look("console-abandoned").await;
    browser.submit("form.code", &[("decoder", MENDED)], "form.code button[value=share]", "Functions").await;
    wait_for_text(&browser, "h2", "Gradual rollout of version 3").await;
    browser.click("#share button[value=promote]").await;
    wait_for_text(&browser, "p", "Promoted.").await;
    assert_eq!(browser.value("#decoder").await, MENDED);
}

/// Charts of a device, and a webhook whose receiver refuses everything.
async fn look_around(name: &'static str, look: Look) {
    let network = Network::with(|settings| settings.output.delivery.allow_private_addresses = true).await;
    let alice = application(&network).await;
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    log_in(&browser).await;
    browser.open(&format!("{APPLICATION}/devices/dev-1")).await;
    browser.click("a[href$='/charts']").await;
    browser.wait_for("Charts").await;
    browser.click("figure summary").await;
    browser.look("console-charts").await;
    alice.simulate("dev-2", &[9, 60], 1).await.unwrap();
    browser.click("a[href*='device=dev']").await;
    browser.wait_for("Devices").await;
    browser.click("input[value=dev-2]").await;
    browser.look("console-devices-chosen").await;
    browser.click("button[formaction]").await;
    browser.wait_for("Charts").await;
    wait_for_text(&browser, "li", "dashed line").await;
    browser.look("console-charts-several").await;

    let receiver = Receiver::start().await;
    let url = receiver.url();
    receiver.answer([Answer::Status(400); 2]);
    browser.open(&format!("{APPLICATION}/webhooks")).await;
    browser.wait_for("Webhooks").await;
    browser.look("console-webhooks-none").await;
    let fields = [("id", "my-hook"), ("url", url.as_str()), ("events", "up")];
    browser.submit("form.narrow", &fields, "form.narrow button", "my-hook").await;
    browser.click("form[action$='/test'] button").await;
    wait_for_text(&browser, "p", "400 Bad Request").await;
    browser.look("console-webhook-test").await;
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    testing::soon("a message that is not taken", open_until(&browser, "webhooks/my-hook", "Resend all 1")).await;
    browser.click("td summary").await;
    browser.look("console-webhook").await;
    change_webhook(&browser, &network, (&alice, &url)).await;
    browser.open(&format!("{APPLICATION}/webhooks")).await;
    browser.look("console-webhooks").await;
    browser.open(&format!("{APPLICATION}/silence")).await;
    browser.wait_for("Silent devices").await;
    browser.look("console-silence").await;
    browser.submit("form.narrow", &[("after", "often")], "form.narrow button", "Silent devices").await;
    wait_for_text(&browser, "p", "a time from 1m to 366d").await;
    browser.look("console-silence-refused").await;
    browser.open(&format!("{APPLICATION}/webhooks/my-hook")).await;
    browser.click("a.danger").await;
    browser.wait_for("Delete webhook my-hook?").await;
    browser.look("console-webhook-delete").await;
    browser.click("main button.danger").await;
    wait_for_text(&browser, "p", "Deleted.").await;
}

/// A webhook that is changed while somebody else changes it.
async fn change_webhook(browser: &Browser, network: &Network, (alice, url): (&Owner, &str)) {
    let theirs = json!({"events": ["up/errors"], "headers": {"X-Key": "<b>"}});
    call(&network.handler_http(), alice, "PATCH", "/my-hook", theirs).await;
    browser.click("a[href$='/change']").await;
    browser.wait_for("Change webhook my-hook").await;
    browser.look("console-webhook-change").await;
    let (form, save) = ("form.narrow", "form.narrow button");
    browser.submit(form, &[("headers", "no header")], save, "Change webhook my-hook").await;
    browser.wait_for_refusal().await;
    wait_for_text(browser, "p", "Headers not valid").await;
    browser.look("console-webhook-change-refused").await;
    browser.click(".problem a").await;
    call(&network.handler_http(), alice, "PATCH", "/my-hook", json!({"events": ["up", "down/acks"]})).await;
    let mine = format!("{url}/mine");
    let fields = [("url", mine.as_str()), ("headers", "X-Key: new")];
    browser.submit(form, &fields, save, "Change webhook my-hook").await;
    wait_for_text(browser, "h2", "Someone else has changed this webhook").await;
    browser.look("console-webhook-conflict").await;
    assert_eq!((browser.value("#url").await, browser.value("#events").await.as_str()), (mine, "up down/acks"));
    browser.tab_to("#remove-1").await;
    browser.press(" ").await;
    browser.tab_to(save).await;
    browser.press(&Key::Enter.to_string()).await;
    browser.wait_for("my-hook").await;
    wait_for_text(browser, "p", "The webhook was changed.").await;
}

/// A device that is registered, changed while somebody else changes it, and deleted.
async fn devices(name: &'static str, look: Look) {
    let network = Network::start().await;
    let alice = network.owner("alice").await;
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    log_in(&browser).await;
    browser.open(APPLICATION).await;
    browser.click("a[href$='/new-device']").await;
    browser.wait_for("Register a device").await;
    browser.look("console-device-new").await;
    let fields = [("dev_id", "sensor-1"), ("description", "By the <b>door</b>"), ("dev_eui", "<b>")];
    browser.submit("form.narrow", &fields, "form.narrow button:not([type=button])", "Register a device").await;
    browser.wait_for_refusal().await;
    wait_for_text(&browser, "p", "DevEUI not valid").await;
    browser.look("console-device-new-refused").await;
    browser.click(".problem a").await;
    let form = browser.client.form(Locator::Css("form.narrow")).await.unwrap();
    form.set_by_name("dev_eui", "AABBCCDDEEFF0011").await.unwrap();
    browser.tab_to("form.narrow button:not([type=button])").await;
    browser.press(&Key::Enter.to_string()).await;
    browser.wait_for("Device sensor-1 is registered").await;
    browser.look("console-device-made-up").await;
    browser.click("main a.button").await;
    browser.wait_for("sensor-1").await;
    browser.look("console-device-registered").await;

    browser.click("a[href$='/change']").await;
    browser.wait_for("Edit sensor-1").await;
    browser.look("console-device-change").await;
    let theirs = alice.handler.get_device(&alice.app_id, &"sensor-1".parse().unwrap()).await.unwrap();
    let attributes = [("floor".to_owned(), "<b>3</b>".to_owned())].into();
    alice.handler.set_device(api::handler::Device { attributes, ..theirs }).await.unwrap();
    browser
        .submit("form.narrow", &[("description", "Mine")], "form.narrow button:not([type=button])", "Edit sensor-1")
        .await;
    browser.wait_for_refusal().await;
    browser.look("console-device-conflict").await;
    assert_eq!(browser.value("#description").await, "Mine");
    assert_eq!(browser.value("#attributes").await, "floor: <b>3</b>");
    browser.click("form.narrow button:not([type=button])").await;
    browser.wait_for("sensor-1").await;
    wait_for_text(&browser, "p", "Changes saved.").await;
    browser.click("a.danger").await;
    browser.wait_for("Delete device sensor-1?").await;
    browser.look("console-device-delete").await;
    browser.click("main button.danger").await;
    browser.wait_for("1 device deleted").await;
    browser.look("console-device-deleted").await;
}

/// The main way: a message failed, its functions are mended, and it is decoded.
async fn mend(name: &'static str, look: Look) {
    let network = Network::start().await;
    let alice = application(&network).await;
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    log_in(&browser).await;
    browser.look("console-applications").await;
    browser.click(&format!("h2 a[href='{APPLICATION}']")).await;
    browser.wait_for("Devices").await;
    browser.look("console-devices").await;
    // On a phone, a row does not say what it does not have.
    let script =
        "return [...document.querySelectorAll('td[data-label=Battery]')].map((cell) => cell.checkVisibility());";
    let shown = browser.client.execute(script, vec![]).await.unwrap();
    assert_eq!(shown, json!([look.width >= 1280, look.width >= 1280]), "neither device has a battery");
    browser.click(".tabs a[href$='/messages']").await;
    browser.wait_for("Messages").await;
    browser.look("console-messages").await;
    if look.width >= 1280 {
        let ends = [bottom(&browser, "#device").await, bottom(&browser, "form.filter button").await];
        assert!((ends[0] - ends[1]).abs() < 10.0, "the button is in the row of what it sends: {ends:?}");
    }
    browser.click("tr.failed .when a").await;
    browser.wait_for("Message from dev-1").await;
    browser.look("console-message").await;
    browser.click("a.button[href*='/functions']").await;
    browser.wait_for("Functions").await;
    browser.look("console-functions").await;

    browser.submit("form.code", &[("decoder", MENDED)], "button[value=try]", "Functions").await;
    wait_for_text(&browser, "span", "newly decoded").await;
    browser.look("console-trial").await;
    browser.submit("form.code", &[("note", "short payloads, too")], "button[value=save]", "Functions").await;
    wait_for_text(&browser, "p", "Saved.").await;
    browser.click("a.button[href$='/correction']").await;
    browser.wait_for("Correct stored results").await;
    browser.look("console-correction").await;
    browser.click("button[value=preview]").await;
    wait_for_text(&browser, "p", "3 would be corrected").await;
    browser.look("console-correction-preview").await;
    browser.click("button[value=correct]").await;
    wait_for_text(&browser, "p", "3 corrected").await;
    browser.look("console-corrected").await;
    alice.simulate("dev-1", &[9], 1).await.unwrap();
    browser.open(&format!("{APPLICATION}/devices/dev-1")).await;
    browser.wait_for("dev-1").await;
    wait_for_text(&browser, "td", "{\"celsius\":1}").await;
    browser.look("console-device").await;
    browser.open(&format!("{APPLICATION}/versions")).await;
    browser.wait_for("Versions").await;
    browser.look("console-versions").await;
    browser.open(&format!("{APPLICATION}/versions/1")).await;
    browser.wait_for("Version 1").await;
    browser.look("console-version").await;
    browser.open("/console/nowhere").await;
    browser.wait_for("Not found").await;
    browser.look("console-not-found").await;
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn a_user_finds_a_failed_message_and_mends_the_functions() {
    mend("console-desk", Look { width: 1280, ..DESK }).await;
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn the_console_works_on_a_phone_in_dark_mode_without_scripts() {
    mend("console-phone", Look { width: 375, dark: true, scripts: false }).await;
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_device_is_registered_changed_and_deleted() {
    devices("console-devices-desk", Look { width: 1280, dark: true, ..DESK }).await;
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_device_is_registered_changed_and_deleted_on_a_phone_without_scripts() {
    devices("console-devices-phone", Look { width: 375, dark: false, scripts: false }).await;
}

// Conformance: console: functions for a share of the devices, promoted, abandoned
#[tokio::test]
async fn a_share_of_the_devices_tries_functions() {
    share("console-share-desk", Look { width: 1280, dark: true, ..DESK }).await;
}

// Conformance: console: functions for a share of the devices, promoted, abandoned
#[tokio::test]
async fn a_share_of_the_devices_tries_functions_on_a_phone_without_scripts() {
    share("console-share-phone", Look { width: 375, dark: false, scripts: false }).await;
}

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test(flavor = "multi_thread")]
async fn charts_and_webhooks_are_looked_at() {
    look_around("console-pages-desk", Look { width: 1280, dark: true, ..DESK }).await;
}

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test(flavor = "multi_thread")]
async fn charts_and_webhooks_are_looked_at_on_a_phone_without_scripts() {
    look_around("console-pages-phone", Look { width: 375, dark: false, scripts: false }).await;
}

// Conformance: console: live view
#[tokio::test]
async fn messages_appear_in_the_live_view_and_wait_while_it_is_paused() {
    let network = Network::start().await;
    let alice = application(&network).await;
    let Some(browser) = Browser::start(site(&network), "console-live", Look { width: 375, ..DESK }).await else {
        return;
    };
    log_in(&browser).await;
    browser.open(&format!("{APPLICATION}/live")).await;
    wait_for_text(&browser, "span", "Messages appear here").await;
    let script = "return document.querySelector('#live .scroll').checkVisibility();";
    assert_eq!(browser.client.execute(script, vec![]).await.unwrap(), false, "a list without rows is a line");
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    alice.simulate("dev-2", &[9], 1).await.unwrap();
    wait_for_text(&browser, "td", "<b>bold</b>").await;
    wait_for_text(&browser, "td", "expected 2").await;
    wait_for_text(&browser, "td", "up simulated").await;
    assert_eq!(browser.client.execute(script, vec![]).await.unwrap(), true);
    browser.look("live").await;
    browser.click("#pause").await;
    alice.simulate("dev-1", &[7, 7], 1).await.unwrap();
    wait_for_text(&browser, "button", "Resume (1 waiting)").await;
    browser.click("#pause").await;
    wait_for_text(&browser, "td", "17.99").await;
    browser.click("#older").await;
    browser.wait_for("Messages").await;
    browser.look("older").await;
}
