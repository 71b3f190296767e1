//! Many devices at once in a real browser: imported from a file, changed together, deleted and brought back.

use std::{fs, path::Path};

use fantoccini::{Locator, key::Key};

use super::{APPLICATION, log_in, wait_for_text};
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
        site,
    },
    devices::moves::second_application,
    harness::Network,
};

const FILE: &str = "dev_id,dev_eui,app_key,description,attributes\n\
    door,0102030405060701,000102030405060708090A0B0C0D0E0F,By the <b>door</b>,\"{\"\"floor\"\":\"\"1\"\"}\"\n\
    roof,0102030405060702,,,\n\
    dev-1,,,A description that is as long as descriptions often are when people write whole sentences,\n\
    No Id,0102030405060703,,,\n";

/// Enters the devices: from a file, or else as somebody pastes them whose browser runs no scripts.
async fn enter(browser: &Browser, (directory, has_scripts): (&Path, bool)) {
    if !has_scripts {
        let form = browser.client.form(Locator::Css("main form")).await.unwrap();
        form.set_by_name("devices", FILE).await.unwrap();
        return;
    }
    let path = directory.join("devices.csv");
    fs::write(&path, FILE).unwrap();
    let input = browser.wait_until("div:not([hidden]) > #file").await;
    input.send_keys(path.to_str().unwrap()).await.unwrap();
    let has_text = "return document.getElementById('devices').value.includes('roof');";
    let read = async { while browser.client.execute(has_text, vec![]).await.unwrap() != true {} };
    testing::soon("the file is read", read).await;
}

async fn import(name: &'static str, look: Look) {
    let network = Network::start().await;
    let alice = network.owner("alice").await;
    alice.add_device("dev-1").await;
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    log_in(&browser).await;
    browser.open(APPLICATION).await;
    browser.click("a[href$='/import-devices']").await;
    browser.wait_for("Import devices").await;
    browser.submit("main form", &[("devices", "nothing")], "main form button", "Import devices").await;
    browser.wait_for_refusal().await;
    browser.look("console-import-refused").await;
    enter(&browser, (network.dir.path(), look.scripts)).await;
    browser.look("console-import").await;
    browser.tab_to("main form button").await;
    browser.press(&Key::Enter.to_string()).await;
    browser.wait_for("Preview of the import").await;
    wait_for_text(&browser, "p", "2 to register, 1 to change, 0 as they are, 1 refused.").await;
    browser.look("console-import-preview").await;
    browser.click("button[value=import]").await;
    browser.wait_for("Result of the import").await;
    wait_for_text(&browser, "p", "2 registered, 1 changed").await;
    browser.look("console-import-done").await;
    browser.open(APPLICATION).await;
    wait_for_text(&browser, "td", "By the <b>door</b>").await;
}

/// Devices that are ticked on two pages, changed together, deleted, and brought back.
async fn change(name: &'static str, look: Look) {
    let network = Network::start().await;
    let alice = network.owner("alice").await;
    for number in 10..65 {
        alice.add_device(&format!("lamp-{number}")).await;
    }
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    log_in(&browser).await;
    browser.open(APPLICATION).await;
    browser.click("input[value=lamp-10]").await;
    browser.click("button[name=after]").await;
    wait_for_text(&browser, "legend", "Chosen on other pages").await;
    browser.click("input[value=lamp-64]").await;
    browser.look("console-devices-ticked").await;
    browser.tab_to("button[formaction$='/change-devices']:not([name])").await;
    browser.press(&Key::Enter.to_string()).await;
    browser.wait_for("Change 2 devices").await;
    browser.look("console-devices-change").await;
    let fields = [("key", "floor"), ("value", "<b>3</b>")];
    browser.submit("form.narrow", &fields, "button[value=set]", "Result of the change").await;
    wait_for_text(&browser, "p", "2 changed").await;
    browser.look("console-devices-changed").await;

    browser.open(&format!("{APPLICATION}?search=floor")).await;
    browser.wait_for("Devices").await;
    browser.click("button[name=all]").await;
    browser.wait_for("Change 2 devices").await;
    browser.click("button.danger").await;
    browser.wait_for("Delete 2 devices?").await;
    browser.look("console-devices-delete").await;
    browser.submit("form.narrow", &[("count", "1")], "button[value=delete]", "Delete 2 devices?").await;
    browser.wait_for_refusal().await;
    browser.look("console-devices-delete-refused").await;
    browser.submit("form.narrow", &[("count", "2")], "button[value=delete]", "2 devices deleted").await;
    browser.look("console-devices-deleted").await;
    browser.click("button[value=preview]").await;
    browser.wait_for("Preview of the import").await;
    browser.click("button[value=import]").await;
    browser.wait_for("Result of the import").await;
    wait_for_text(&browser, "p", "2 registered").await;
    browser.open(&format!("{APPLICATION}?search=floor")).await;
    wait_for_text(&browser, "td", "lamp-64").await;
}

/// A device that is moved to another application, and back.
async fn move_there_and_back(name: &'static str, look: Look) {
    let network = Network::start().await;
    let alice = network.owner("alice").await;
    for dev_id in ["lamp-1", "lamp-2"] {
        alice.add_device(dev_id).await;
    }
    second_application(&network, &alice).await.add_device("lamp-2").await;
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    log_in(&browser).await;
    browser.open(&format!("{APPLICATION}?search=lamp")).await;
    browser.wait_for("Devices").await;
    browser.click("button[name=all]").await;
    browser.wait_for("Change 2 devices").await;
    browser.tab_to("form[action$='/move-devices'] button").await;
    browser.press(&Key::Enter.to_string()).await;
    browser.wait_for("Move 2 devices").await;
    browser.look("console-devices-move").await;
    browser.tab_to("button[value=preview]").await;
    browser.press(&Key::Enter.to_string()).await;
    wait_for_text(&browser, "p", "1 to move to alice-app-live, 1 to stay.").await;
    browser.look("console-devices-move-preview").await;
    browser.click("button[value=move]").await;
    browser.wait_for("1 device moved to alice-app-live").await;
    browser.look("console-devices-moved").await;
    browser.click("button[value=move]").await;
    browser.wait_for("1 device moved to alice-app").await;
    browser.open(APPLICATION).await;
    wait_for_text(&browser, "td", "lamp-1").await;
}

// Conformance: console: many devices moved to another application after a preview, and back
#[tokio::test]
async fn a_device_is_moved_to_another_application_and_back() {
    move_there_and_back("console-move-desk", Look { width: 1280, dark: true, ..DESK }).await;
}

// Conformance: console: many devices moved to another application after a preview, and back
#[tokio::test]
async fn a_device_is_moved_to_another_application_and_back_on_a_phone_without_scripts() {
    move_there_and_back("console-move-phone", Look { width: 375, dark: false, scripts: false }).await;
}

// Conformance: console: devices imported after a preview, once
#[tokio::test]
async fn a_file_of_devices_is_imported() {
    import("console-import-desk", Look { width: 1280, dark: true, ..DESK }).await;
}

// Conformance: console: devices imported after a preview, once
#[tokio::test]
async fn a_file_of_devices_is_imported_on_a_phone_without_scripts() {
    import("console-import-phone", Look { width: 375, dark: false, scripts: false }).await;
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn many_devices_are_changed_deleted_and_brought_back() {
    change("console-many-desk", Look { width: 1280, ..DESK }).await;
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn many_devices_are_changed_deleted_and_brought_back_on_a_phone_without_scripts() {
    change("console-many-phone", Look { width: 375, dark: true, scripts: false }).await;
}
