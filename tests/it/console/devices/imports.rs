//! Imports of devices in the console: shown first, then done, once.

use std::time::Duration;

use api::rest::handler::Device;
use serde_json::json;

use crate::{
    browser::DESK,
    console::{
        browsing::{ask, logged_in},
        stored, visitor,
        visitor::Visitor,
    },
    harness::{Network, device},
};

const IMPORT: &str = "/console/applications/alice-app/import-devices";
const KEY: &str = "000102030405060708090A0B0C0D0E0F";

/// A new device, a changed one, and a row that cannot be used.
fn file() -> String {
    format!(
        "dev_id,dev_eui,app_key,description\n\
         sensor-1,0102030405060708,{KEY},<b>door</b>\n\
         dev-1,,,changed\n\
         No Id,0102030405060709,,\n"
    )
}

// Conformance: console: devices imported after a preview, once
#[tokio::test]
async fn a_file_is_imported_after_somebody_has_seen_what_it_would_do() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let table = visitor.get("/console/applications/alice-app").await;
    let page = visitor.get(&table.link("Import")).await;
    assert!(page.html.contains("Import devices") && page.html.contains("At most 10,000 devices"), "{}", page.html);
    let preview = visitor.post(IMPORT, &[("devices", &file())]).await;
    let text = "1 to register, 1 to change, 0 as they are, 1 refused";
    assert!(preview.html.contains(text) && preview.html.contains("Import 2 devices"), "{}", preview.html);
    assert!(!preview.html.contains("Changes keys of"), "{}", preview.html);
    assert!(preview.html.contains("OTAA") && preview.html.contains("DevID not valid"), "{}", preview.html);
    assert!(!preview.html.contains(KEY) && !preview.html.contains("<b>"), "{}", preview.html);
    assert!(stored(&alice, "sensor-1").await.is_none(), "nothing is done yet");

    let confirmed = [("sealed", preview.value("sealed")), ("step", "import".to_owned())];
    let confirmed = confirmed.each_ref().map(|(name, value)| (*name, value.as_str()));
    let done = visitor.post(IMPORT, &confirmed).await;
    assert!(
        done.status == 200 && done.html.contains("1 registered, 1 changed, 0 as they were, 0 failed"),
        "{}",
        done.html
    );
    let registered = stored(&alice, "sensor-1").await.unwrap();
    let lorawan = registered.lorawan_device.unwrap();
    assert_eq!((lorawan.app_key.unwrap().to_hex().as_str(), registered.description.as_str()), (KEY, "<b>door</b>"));
    assert!(!lorawan.app_eui.is_zero(), "it has that of the application");
    assert_eq!(stored(&alice, "dev-1").await.unwrap().description, "changed");

    // As a browser sends it whose connection was lost.
    let again = visitor.post(IMPORT, &confirmed).await;
    assert!(again.status == 409 && again.html.contains("You sent this import before"), "{}", again.html);
    assert!(again.html.contains("0 to register, 0 to change, 2 as they are"), "{}", again.html);
    alice.handler.delete_device(&alice.app_id, &"sensor-1".parse().unwrap()).await.unwrap();
    let again = visitor.post(IMPORT, &confirmed).await;
    assert!(again.status == 409 && again.html.contains("1 to register"), "{}", again.html);
    assert!(stored(&alice, "sensor-1").await.is_none(), "nobody has confirmed that it comes back");
    visitor.post(IMPORT, &[("sealed", &again.value("sealed")), ("step", "import")]).await;
    assert!(stored(&alice, "sensor-1").await.is_some());
}

// Conformance: console: devices imported after a preview, once
#[tokio::test]
async fn nothing_is_done_that_nobody_has_seen() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let preview = visitor.post(IMPORT, &[("devices", "dev_id\nsensor-1\ndev-1\n")]).await;
    alice.add_device("sensor-1").await;
    let theirs = Device { description: "theirs".to_owned(), ..device(&alice.app_id, "sensor-1") };
    alice.handler.set_device(theirs.into()).await.unwrap();
    let page = visitor.post(IMPORT, &[("sealed", &preview.value("sealed")), ("step", "import")]).await;
    assert!(page.status == 409 && page.html.contains("Devices have changed since the preview"), "{}", page.html);
    assert!(page.html.contains("There is nothing to import."), "{}", page.html);
    assert_eq!(stored(&alice, "sensor-1").await.unwrap().description, "theirs");

    let risky = visitor.post(IMPORT, &[("devices", &format!("dev_id,app_key,f_cnt_up\ndev-1,{KEY},9\n"))]).await;
    let warning = "Changes keys of 1 and frame counters of 1 registered devices";
    assert!(risky.html.contains(warning) && !risky.html.contains(KEY), "{}", risky.html);

    let rename = "dev_id,dev_eui\ndev-1,0102030405060708\n";
    let refused = visitor.post(IMPORT, &[("devices", rename)]).await;
    assert!(refused.html.contains("tick the box that allows it"), "{}", refused.html);
    let allowed = visitor.post(IMPORT, &[("devices", rename), ("override", "yes")]).await;
    assert!(allowed.html.contains("1 to change"), "{}", allowed.html);
    visitor.post(IMPORT, &[("sealed", &allowed.value("sealed")), ("step", "import")]).await;
    assert_eq!(stored(&alice, "dev-1").await.unwrap().lorawan_device.unwrap().dev_eui.to_hex(), "0102030405060708");
}

// Conformance: console: devices imported after a preview, once
#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_and_is_in_no_page() {
    let network = Network::start().await;
    let (_alice, visitor) = visitor(&network).await;
    let many: String =
        std::iter::once("dev_id\n".to_owned()).chain((0..10_001).map(|number| format!("d-{number}\n"))).collect();
    let large = format!("dev_id\n{}", "x".repeat(1_500_000));
    for (text, expected) in [
        ("", "must be entered"),
        ("a,b\n1,2\n", "must name the columns"),
        (&format!("{{\"app_key\":\"{KEY}\""), "not valid JSON"),
        (&many, "more than 10000 devices"),
        (&large, "at most 1.5 MB"),
    ] {
        let page = visitor.post(IMPORT, &[("devices", text)]).await;
        assert_eq!(page.status, 400, "{expected}");
        assert!(page.html.contains(expected) && page.html.contains("role=\"alert\""), "{expected}: {}", page.html);
        assert!(!page.html.contains(KEY) && page.typed("devices").is_empty(), "{expected}");
    }
    let page = visitor.post(IMPORT, &[("sealed", "AAAA"), ("step", "import")]).await;
    assert!(page.status == 400 && page.html.contains("must be entered again"), "{}: {}", page.status, page.html);
}

// Conformance: console: devices imported after a preview, once
#[tokio::test]
async fn a_file_outlives_neither_its_time_nor_its_login() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (alice, visitor) = visitor(&network).await;
    let preview = visitor.post(IMPORT, &[("devices", &file())]).await;
    let sealed = preview.value("sealed");
    clock.advance(Duration::from_secs(2 * 3600));
    for fields in [[("devices", file().as_str()), ("step", "")], [("sealed", sealed.as_str()), ("step", "import")]] {
        let page = visitor.post(IMPORT, &fields).await;
        assert!(page.path.starts_with("/console/drafts/"), "{}: {}", page.path, page.html);
        assert!(page.html.contains("Nothing has been imported.") && !page.html.contains(KEY), "{}", page.html);
        clock.advance(Duration::from_secs(2 * 3600));
    }
    assert!(stored(&alice, "sensor-1").await.is_none());
}

/// Chooses a file, and returns what is in the field for devices then, and which of two alerts are hidden.
fn choose(file: &str) -> String {
    format!(
        "const input = document.getElementById('file'), into = document.getElementById('devices');
        into.value = 'before';
        const chosen = new DataTransfer();
        chosen.items.add(new File([{file}], 'devices.csv'));
        input.files = chosen.files;
        input.dispatchEvent(new Event('change'));
        const hidden = (id) => document.getElementById(id).hidden;
        return new Promise((done) => {{
          const look = () => {{
            if (into.value === 'before') setTimeout(look, 10);
            else done([into.value, hidden('file-large'), hidden('file-unreadable')]);
          }};
          look();
        }});"
    )
}

#[tokio::test]
async fn a_chosen_file_is_in_the_form_as_it_is_or_not_at_all() {
    let network = Network::start().await;
    let (_alice, _visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "import", DESK).await else { return };
    browser.open(IMPORT).await;
    for (file, expected) in [
        ("'dev_id,description\\nd,K\\u00fcche'", json!(["dev_id,description\nd,K\u{fc}che", true, true])),
        // The letter as Windows writes it without Unicode, and in UTF-16.
        ("new Uint8Array([100, 10, 75, 252])", json!(["", true, false])),
        ("new Uint8Array([255, 254, 100, 0, 252, 0])", json!(["d\u{fc}", true, true])),
        // The quotes take three bytes each in a form.
        ("'\"'.repeat(800_000)", json!(["", false, true])),
        ("'x'.repeat(1_500_001)", json!(["", false, true])),
    ] {
        assert_eq!(ask(&browser, &choose(file)).await, expected, "{file}");
    }
    browser.look("import").await;
}

// Conformance: console: devices imported after a preview, once
#[tokio::test]
async fn nobody_else_imports_devices() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let sealed = visitor.post(IMPORT, &[("devices", &file())]).await.value("sealed");
    let confirmed = [("sealed", sealed.as_str()), ("step", "import")];
    assert_eq!(visitor.post_from(Some("https://evil.example"), IMPORT, &confirmed).await.status, 403);
    network.owner("bobby").await;
    let bobby = Visitor::logged_in(&network.stack.settings().client.auth_server, "bobby").await;
    bobby.get("/console").await;
    assert_eq!(bobby.get(IMPORT).await.status, 404);
    assert_eq!(bobby.post(IMPORT, &confirmed).await.status, 404);
    let page = bobby.post(&IMPORT.replace("alice", "bobby"), &confirmed).await;
    assert!(page.status == 400 && page.html.contains("must be entered again"), "{}: {}", page.status, page.html);
    assert!(stored(&alice, "sensor-1").await.is_none());
}
