//! Devices that are moved to another application in the console: the preview, the move, and back.

use std::time::Duration;

use api::rest::handler::{Device, LorawanDevice};

use crate::{
    console::{stored, visitor, visitor::Visitor},
    devices::moves::second_application,
    harness::{Network, Owner, device},
};

const APPLICATION: &str = "/console/applications/alice-app";
const MOVE: &str = "/console/applications/alice-app/move-devices";
const BACK: &str = "/console/applications/alice-app-live/move-devices";
const KEY: &str = "000102030405060708090A0B0C0D0E0F";
const LIVE: (&str, &str) = ("to", "alice-app-live");

/// Two devices in the first application, of which the second application has the id of one.
async fn applications(network: &Network) -> (Owner, Owner, Visitor) {
    let (alice, visitor) = visitor(network).await;
    let mut first = device(&alice.app_id, "dev-1");
    let lorawan = first.lorawan_device.take().unwrap();
    let app_key = Some(KEY.parse().unwrap());
    first.lorawan_device = Some(LorawanDevice { app_key, f_cnt_up: 7, ..lorawan });
    alice.handler.set_device(first.into()).await.unwrap();
    alice.add_device("dev-2").await;
    let live = second_application(network, &alice).await;
    live.add_device("dev-2").await;
    (alice, live, visitor)
}

/// A device without what names its application.
fn anywhere(device: Option<Device>) -> Device {
    let device = device.unwrap();
    let lorawan = device.lorawan_device.map(|lorawan| LorawanDevice { app_id: String::new(), ..lorawan });
    Device { app_id: String::new(), lorawan_device: lorawan, ..device }
}

// Conformance: console: many devices moved to another application after a preview, and back
#[tokio::test]
async fn devices_are_moved_after_a_preview_and_moved_back() {
    let network = Network::start().await;
    let (alice, live, visitor) = applications(&network).await;
    let page = visitor.get(&format!("{APPLICATION}/change-devices?device=dev-1")).await;
    assert!(page.html.contains(&format!("action=\"{MOVE}\"")), "{}", page.html);
    let ids = ("ids", "dev-1 dev-2 gone");
    let page = visitor.post(MOVE, &[ids]).await;
    assert!(page.html.contains("Move 3 devices") && page.html.contains("value=\"alice-app-live\""), "{}", page.html);
    assert!(!page.html.contains("value=\"alice-app\""), "it is there already: {}", page.html);
    let preview = visitor.post(MOVE, &[ids, LIVE, ("step", "preview")]).await;
    assert!(preview.html.contains("1 to move to alice-app-live, 2 to stay."), "{}", preview.html);
    for reason in ["alice-app-live has a device with this id already", "it is not in this application any more"] {
        assert!(preview.html.contains(reason), "{}", preview.html);
    }
    let before = stored(&alice, "dev-1").await;
    assert!(before.is_some(), "nothing has moved yet");

    let moved = visitor.post(MOVE, &[("ids", "dev-1 dev-2"), LIVE, ("step", "move")]).await;
    assert!(moved.html.contains("1 device moved to") && moved.html.contains("1 was not moved"), "{}", moved.html);
    assert!(moved.html.contains("already exists") && !moved.html.contains(KEY), "{}", moved.html);
    assert!(stored(&alice, "dev-1").await.is_none() && stored(&alice, "dev-2").await.is_some());
    assert_eq!(anywhere(stored(&live, "dev-1").await), anywhere(before.clone()), "with key and counters");
    // Whoever goes on with the rest still needs the page that moves the others back.
    assert!(moved.html.contains("move-devices\" target=\"_blank\""), "{}", moved.html);
    assert!(moved.html.contains(&format!("action=\"{BACK}\"")) && moved.value("ids") == "dev-1", "{}", moved.html);

    let to = moved.value("to");
    let back = [("ids", "dev-1"), ("to", to.as_str()), ("step", "move")];
    let page = visitor.post(BACK, &back).await;
    assert!(page.html.contains("1 device moved to") && !page.html.contains("not moved"), "{}", page.html);
    assert_eq!(stored(&alice, "dev-1").await, before);
    let page = visitor.post(BACK, &back).await;
    assert!(page.html.contains("0 devices moved to") && page.html.contains("no such device"), "{}", page.html);
    assert!(!page.html.contains("Undo"), "{}", page.html);
}

// Conformance: console: many devices moved to another application after a preview, and back
#[tokio::test]
async fn downlinks_that_are_dropped_are_counted() {
    let network = Network::start().await;
    let (alice, _live, visitor) = applications(&network).await;
    let downlink = api::downlink::Downlink {
        app_id: alice.app_id.to_string(),
        dev_id: "dev-1".to_owned(),
        payload_raw: vec![7],
        ..Default::default()
    };
    alice.handler.schedule_downlink(downlink).await.unwrap();
    let moved = visitor.post(MOVE, &[("ids", "dev-1"), LIVE, ("step", "move")]).await;
    assert!(moved.html.contains("1 downlink that waited was dropped."), "{}", moved.html);
}

// Conformance: console: many devices moved to another application after a preview, and back
#[tokio::test]
async fn nothing_moves_to_where_the_user_may_not_change_devices() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let page = visitor.post(MOVE, &[("ids", "dev-1")]).await;
    assert!(page.html.contains("There is no other application in which you may change devices."), "{}", page.html);
    network.owner("bobby").await;
    let bobby = Visitor::logged_in(&network.stack.settings().client.auth_server, "bobby").await;
    bobby.get("/console").await;
    let step = ("step", "move");
    let there = [("ids", "dev-1"), ("to", "bobby-app"), step];
    assert_eq!(visitor.post(MOVE, &there).await.status, 404);
    assert_eq!(bobby.post(MOVE, &there).await.status, 404);
    assert_eq!(visitor.post_from(Some("https://evil.example"), MOVE, &there).await.status, 403);
    for to in ["<b>", "alice-app", ""] {
        let page = visitor.post(MOVE, &[("ids", "dev-1"), ("to", to), step]).await;
        assert!(page.status == 400 && page.html.contains("Application not valid"), "{to}: {}", page.html);
        assert!(!page.html.contains("<b>"), "{}", page.html);
    }
    assert!(stored(&alice, "dev-1").await.is_some());
}

// Conformance: console: many devices moved to another application after a preview, and back
#[tokio::test]
async fn a_move_comes_back_after_the_login() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, _live, visitor) = applications(&network).await;
    clock.advance(Duration::from_secs(2 * 3600));
    let page = visitor.post(MOVE, &[("ids", "dev-1 dev-2"), LIVE, ("step", "move")]).await;
    assert!(page.path.starts_with("/console/drafts/"), "{}", page.path);
    assert!(page.html.contains("may not have been moved") && page.value("ids") == "dev-1 dev-2", "{}", page.html);
    assert!(page.html.contains("value=\"alice-app-live\" selected"), "{}", page.html);
}
