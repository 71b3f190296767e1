//! Many devices at once in the console: attributes, deletion, and what brings devices back.

use std::time::Duration;

use api::rest::handler::{Device, LorawanDevice};
use client::account::AccountClient;
use serde_json::json;
use types::ApplicationRight;

use crate::{
    browser::{DESK, console::wait_for_text, driver::Link},
    console::{
        browsing::{ask, logged_in},
        stored, visitor,
        visitor::Visitor,
    },
    harness::{Network, Owner, device},
};

const APPLICATION: &str = "/console/applications/alice-app";
const CHANGE: &str = "/console/applications/alice-app/change-devices";
const DELETE: &str = "/console/applications/alice-app/delete-devices";
const IMPORT: &str = "/console/applications/alice-app/import-devices";
const KEY: &str = "000102030405060708090A0B0C0D0E0F";

/// Three devices, of which the first has a key and has counted frames.
async fn devices(network: &Network) -> (Owner, Visitor) {
    let (alice, visitor) = visitor(network).await;
    let mut first = device(&alice.app_id, "dev-1");
    let lorawan = first.lorawan_device.take().unwrap();
    let app_key = Some(KEY.parse().unwrap());
    first.lorawan_device = Some(LorawanDevice { app_key, f_cnt_up: 7, ..lorawan });
    first.attributes = [("room".to_owned(), "a, \"b\"".to_owned())].into();
    alice.handler.set_device(first.into()).await.unwrap();
    alice.add_device("dev-2").await;
    alice.add_device("dev-3").await;
    (alice, visitor)
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn an_attribute_of_many_devices_is_set_and_removed_and_nothing_else() {
    let network = Network::start().await;
    let (alice, visitor) = devices(&network).await;
    let table = visitor.get(APPLICATION).await;
    assert!(table.html.contains(&format!("formaction=\"{CHANGE}\"")), "{}", table.html);
    let page = visitor.get(&format!("{CHANGE}?device=dev-2&device=dev-1&search=x")).await;
    assert!(page.html.contains("Change 2 devices") && page.value("ids") == "dev-1 dev-2", "{}", page.html);
    let before = stored(&alice, "dev-1").await.unwrap();
    let set = [("ids", "dev-1 dev-2"), ("key", " floor "), ("value", "<b>3</b>"), ("step", "set")];
    let page = visitor.post(CHANGE, &set).await;
    assert!(page.html.contains("2 changed, 0 were so already, 0 failed, 0 not begun"), "{}", page.html);
    let page = visitor.post(CHANGE, &set).await;
    assert!(page.html.contains("0 changed, 2 were so already"), "sent twice: {}", page.html);
    let mut expected = before.clone();
    expected.attributes.insert("floor".to_owned(), "<b>3</b>".to_owned());
    assert_eq!(stored(&alice, "dev-1").await.unwrap(), expected, "keys, counters and other attributes stay");
    assert!(stored(&alice, "dev-3").await.unwrap().attributes.is_empty());

    let remove = [("ids", "dev-1 dev-2 dev-3"), ("key", "floor"), ("step", "remove")];
    let page = visitor.post(CHANGE, &remove).await;
    assert!(page.html.contains("2 changed, 1 were so already"), "{}", page.html);
    assert_eq!(stored(&alice, "dev-1").await.unwrap(), before);
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn devices_that_cannot_be_changed_are_named_and_the_others_are_changed() {
    let network = Network::start().await;
    let (alice, visitor) = devices(&network).await;
    let attributes = (0..5).map(|number| (format!("key-{number}"), String::new())).collect();
    let full = Device { attributes, ..device(&alice.app_id, "dev-2") };
    alice.handler.set_device(full.into()).await.unwrap();
    let set = [("ids", "dev-1 dev-2 gone"), ("key", "floor"), ("value", "3"), ("step", "set")];
    let page = visitor.post(CHANGE, &set).await;
    assert!(page.html.contains("1 changed, 0 were so already, 2 failed, 0 not begun"), "{}", page.html);
    assert!(page.html.contains("at most 5 of your own") && page.html.contains("gone not found"), "{}", page.html);
    let again = ["ids", "key", "value"].map(|name| page.value(name));
    assert_eq!(again, ["dev-2 gone", "floor", "3"].map(str::to_owned));
    for (fields, expected) in [
        ([("ids", "dev-1"), ("key", " "), ("step", "set")], "Key not valid"),
        ([("ids", "dev-1 <b>"), ("key", "floor"), ("step", "set")], "Devices not valid"),
    ] {
        let page = visitor.post(CHANGE, &fields).await;
        assert!(page.status == 400 && page.html.contains(expected), "{expected}: {}", page.html);
        assert!(!page.html.contains("<b>"), "{}", page.html);
    }
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn all_devices_that_match_are_chosen_at_once() {
    let network = Network::start().await;
    let (alice, visitor) = devices(&network).await;
    for number in 10..70 {
        alice.add_device(&format!("lamp-{number}")).await;
    }
    let found = visitor.get(&format!("{CHANGE}?search=LAMP&all=yes&device=dev-1")).await;
    assert!(found.html.contains("Change 60 devices") && found.value("ids").ends_with("lamp-69"), "{}", found.html);
    let none = visitor.get(&format!("{CHANGE}?search=nothing&all=yes")).await;
    assert!(none.html.contains("No devices are chosen."), "{}", none.html);
    // More than a chart has stay ticked.
    let many: String = (10..70).map(|number| format!("&device=lamp-{number}")).collect();
    let table = visitor.get(&format!("{APPLICATION}?search=dev-1{many}")).await;
    assert_eq!(table.html.matches("checked>lamp-").count(), 60, "{}", table.html);
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn many_devices_are_deleted_after_their_number_was_typed_and_are_brought_back() {
    let network = Network::start().await;
    let (alice, visitor) = devices(&network).await;
    let before = [stored(&alice, "dev-1").await, stored(&alice, "dev-2").await];
    let ids = ("ids", "dev-1 dev-2");
    let page = visitor.post(DELETE, &[ids]).await;
    assert!(page.html.contains("Delete 2 devices?") && page.html.contains("Enter 2 to confirm"), "{}", page.html);
    for count in ["", "3", "two"] {
        let page = visitor.post(DELETE, &[ids, ("step", "delete"), ("count", count)]).await;
        assert!(page.status == 400 && page.html.contains("must be 2"), "{}", page.html);
    }
    assert!(stored(&alice, "dev-1").await.is_some(), "nothing is deleted yet");
    let page = visitor.post(DELETE, &[ids, ("step", "delete"), ("count", "2")]).await;
    assert!(page.html.contains("2 devices deleted") && !page.html.contains(KEY), "{}", page.html);
    assert!(stored(&alice, "dev-1").await.is_none() && stored(&alice, "dev-3").await.is_some());

    let undo = visitor.post(IMPORT, &[("sealed", &page.value("sealed")), ("step", "preview")]).await;
    assert!(undo.html.contains("2 to register, 0 to change") && !undo.html.contains(KEY), "{}", undo.html);
    visitor.post(IMPORT, &[("sealed", &undo.value("sealed")), ("step", "import")]).await;
    assert_eq!([stored(&alice, "dev-1").await, stored(&alice, "dev-2").await], before);

    let page = visitor.post(DELETE, &[("ids", "dev-3 gone"), ("step", "delete"), ("count", "2")]).await;
    assert!(page.html.contains("1 device deleted") && page.html.contains("1 was not deleted"), "{}", page.html);
    assert!(page.value("ids") == "gone" && page.html.contains("no such device"), "{}", page.html);
    let again = visitor.get(&page.path).await;
    assert!(again.html.contains("no such device") && again.html.contains("Undo"), "{}", again.html);
    assert_eq!(again.value("ids"), "gone");
    assert!(again.html.find("Undo") < again.html.find("Delete the rest"), "{}", again.html);
    let page = visitor.post(DELETE, &[("ids", "gone"), ("step", "delete"), ("count", "1")]).await;
    assert!(page.html.contains("0 devices deleted") && !page.html.contains("Undo"), "{}", page.html);
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn a_deletion_is_undone_after_its_page_was_left() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (alice, visitor) = devices(&network).await;
    let before = [stored(&alice, "dev-1").await, stored(&alice, "dev-2").await];
    let two = [("ids", "dev-1 dev-2"), ("step", "delete"), ("count", "2")];
    let deleted = visitor.post(DELETE, &two).await;
    let again = visitor.get(&deleted.path).await;
    assert!(again.html.contains("2 devices deleted") && !again.html.contains(KEY), "{}", again.html);
    assert_eq!(again.value("sealed"), deleted.value("sealed"));
    clock.advance(Duration::from_secs(40 * 60));
    let table = visitor.get(APPLICATION).await;
    assert_eq!(table.link("Bring back 2 devices"), deleted.path);

    let undo = visitor.post(IMPORT, &[("sealed", &again.value("sealed")), ("step", "preview")]).await;
    assert!(visitor.get(APPLICATION).await.html.contains("Bring back"), "a preview brings nothing back");
    visitor.post(IMPORT, &[("sealed", &undo.value("sealed")), ("step", "import")]).await;
    assert_eq!([stored(&alice, "dev-1").await, stored(&alice, "dev-2").await], before);
    assert!(!visitor.get(APPLICATION).await.html.contains("Bring back"), "it is done");
    assert_eq!(visitor.get(&deleted.path).await.status, 404);

    let deleted = visitor.post(DELETE, &two).await;
    clock.advance(Duration::from_secs(3601));
    assert_eq!(visitor.get(&deleted.path).await.status, 404, "the hour is over");
    assert!(!visitor.get(APPLICATION).await.html.contains("Bring back"));
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn nobody_else_undoes_a_deletion_nor_in_another_application() {
    let network = Network::start().await;
    let (alice, visitor) = devices(&network).await;
    let deleted = visitor.post(DELETE, &[("ids", "dev-1"), ("step", "delete"), ("count", "1")]).await;
    let server = &network.stack.settings().client.auth_server;
    let bobby_app = network.owner("bobby").await;
    let (account, username) = (AccountClient::new(server).unwrap(), "bobby".parse().unwrap());
    account.set_collaborator(&alice.token, &alice.app_id, &username, &[ApplicationRight::Devices]).await.unwrap();
    let bobby = Visitor::logged_in(server, "bobby").await;
    let table = bobby.get(APPLICATION).await;
    assert!(table.status == 200 && !table.html.contains("Bring back"), "{}", table.html);
    let sealed = deleted.value("sealed");
    let other = bobby.get(&deleted.path).await;
    assert!(other.status == 404 && !other.html.contains(&sealed), "{}", other.html);
    assert_eq!(
        bobby.post(IMPORT, &[("sealed", &sealed), ("step", "preview")]).await.status,
        400,
        "it is sealed for alice"
    );

    // Alice may use the other application, too.
    let (account, username) = (AccountClient::new(server).unwrap(), "alice".parse().unwrap());
    let rights = [ApplicationRight::Devices];
    account.set_collaborator(&bobby_app.token, &bobby_app.app_id, &username, &rights).await.unwrap();
    let elsewhere = deleted.path.replace("alice-app", "bobby-app");
    assert_eq!(visitor.get("/console/applications/bobby-app").await.status, 200);
    assert_eq!(visitor.get(&elsewhere).await.status, 404);
    assert_eq!(visitor.get(&deleted.path).await.status, 200);
}

#[tokio::test]
async fn a_second_click_does_not_lose_what_brings_devices_back() {
    let network = Network::start().await;
    let (alice, _visitor) = devices(&network).await;
    let Some(browser) = logged_in(&network, "delete", DESK).await else { return };
    browser.open(&format!("{APPLICATION}/devices/dev-1/delete")).await;
    let script = "const form = document.querySelector('form[data-once]'), refused = [];
        form.addEventListener('submit', (event) => refused.push(event.defaultPrevented));
        form.requestSubmit();
        form.requestSubmit();
        return refused;";
    assert_eq!(ask(&browser, script).await, json!([false, true]));
    wait_for_text(&browser, "h1", "1 device deleted").await;
    wait_for_text(&browser, "button", "Undo").await;
    assert!(stored(&alice, "dev-1").await.is_none());
}

#[tokio::test]
async fn a_form_whose_answer_was_stopped_can_be_sent_again() {
    let network = Network::start().await;
    let _alice = devices(&network).await;
    let Some(browser) = logged_in(&network, "stopped", DESK).await else { return };
    browser.open(&format!("{APPLICATION}/devices/dev-1")).await;
    // The answer does not come before it is stopped.
    browser.limit_network(Link { latency_ms: 5000, ..Link::FAST }).await;
    let script = "const form = document.querySelector('form[action$=\"/downlinks\"]'), refused = [];
        form.elements.payload.value = '0102';
        form.addEventListener('submit', (event) => refused.push(event.defaultPrevented));
        navigation.addEventListener('navigate', () => setTimeout(() => {
          form.requestSubmit();
          window.stop();
          document.body.dataset.refused = refused;
        }), { once: true });
        form.requestSubmit();";
    ask(&browser, script).await;
    browser.wait_until("body[data-refused='false,true']").await;
    browser.limit_network(Link::FAST).await;
    browser.click("form[action$='/downlinks'] button").await;
    wait_for_text(&browser, "p", "Downlink queued.").await;
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn a_change_of_many_devices_comes_back_after_the_login() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = devices(&network).await;
    clock.advance(Duration::from_secs(2 * 3600));
    let set = [("ids", "dev-1 dev-2"), ("key", "floor"), ("value", "3"), ("step", "set")];
    let page = visitor.post(CHANGE, &set).await;
    assert!(page.path.starts_with("/console/drafts/") && page.html.contains("may not have been made"), "{}", page.html);
    let typed = ["ids", "key", "value"].map(|name| page.html.contains(&format!("name=\"{name}\" value=\"")));
    assert_eq!((typed, page.value("key").as_str()), ([true; 3], "floor"));
    let device = visitor.get(&format!("{APPLICATION}/devices/dev-1")).await;
    assert!(device.html.contains("<h1>dev-1</h1>") && !device.html.contains("floor"), "{}", device.html);
}

// Conformance: console: many devices changed, deleted, brought back
#[tokio::test]
async fn nobody_else_changes_or_deletes_many_devices() {
    let network = Network::start().await;
    let (alice, visitor) = devices(&network).await;
    let set = vec![("ids", "dev-1"), ("key", "floor"), ("value", "3"), ("step", "set")];
    let delete = vec![("ids", "dev-1"), ("step", "delete"), ("count", "1")];
    network.owner("bobby").await;
    let bobby = Visitor::logged_in(&network.stack.settings().client.auth_server, "bobby").await;
    bobby.get("/console").await;
    for (path, fields) in [(CHANGE, &set), (DELETE, &delete)] {
        assert_eq!(visitor.post_from(Some("https://evil.example"), path, fields).await.status, 403);
        assert_eq!(bobby.get(path).await.status, 404);
        assert_eq!(bobby.post(path, fields).await.status, 404);
    }
    assert!(!stored(&alice, "dev-1").await.unwrap().attributes.contains_key("floor"));
}
