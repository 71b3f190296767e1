//! The table of devices: battery, and devices that are silent.

mod fleet;
mod late;

use std::time::Duration;

use crate::{console::visitor, harness::Network};

const APPLICATION: &str = "/console/applications/alice-app";
const DECODER: &str = "function Decoder(bytes) {
  return bytes[0] ? { Battery_Voltage: bytes[0] / 10 } : { celsius: 20 };
}";

// Conformance: console: battery and silence of devices
#[tokio::test]
async fn the_battery_is_that_of_the_newest_uplink_that_has_one() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.add_device("dev-2").await;
    alice.set_functions([DECODER, "", ""]).await.unwrap();
    for byte in [30, 36, 0] {
        alice.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    let table = visitor.get(APPLICATION).await;
    // What devices and people write may run from right to left, and must not turn what is beside it.
    assert!(table.html.contains("<bdi>3.6 V</bdi>") && !table.html.contains("3 V"), "{}", table.html);
    assert_eq!(table.html.matches("data-label=\"Battery\">–").count(), 1, "dev-2 has none: {}", table.html);
    assert!(table.html.contains("Missing frames") && !table.html.contains("badge bad"), "{}", table.html);
}

// Conformance: console: battery and silence of devices
#[tokio::test]
async fn devices_that_were_not_seen_for_some_time_are_shown_alone() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (alice, visitor) = visitor(&network).await;
    for device in ["dev-2", "dev-3"] {
        alice.add_device(device).await;
    }
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    clock.advance(Duration::from_secs(40 * 60));
    alice.simulate("dev-2", &[8, 52], 1).await.unwrap();
    let silent = visitor.get(&format!("{APPLICATION}?silent=30m")).await;
    for expected in ["silent for 40 min", "\"Last seen\">never</td>", "1–2 of 2 devices that match.", "value=\"30m\""]
    {
        assert!(silent.html.contains(expected), "{expected}: {}", silent.html);
    }
    assert!(!silent.html.contains("/devices/dev-2\""), "it was seen: {}", silent.html);
    assert!(silent.html.contains("Change all 2 that match"), "{}", silent.html);
    let change = visitor.get(&format!("{APPLICATION}/change-devices?silent=30m&all=yes")).await;
    assert_eq!(change.value("ids"), "dev-1 dev-3", "{}", change.html);
    let by_time = visitor.get(&format!("{APPLICATION}?order=last_seen")).await;
    let order = ["dev-3", "dev-1", "dev-2"].map(|id| by_time.html.find(&format!("/devices/{id}\"")).unwrap());
    assert!(order.is_sorted(), "{order:?}: {}", by_time.html);
    let reordered = visitor.get(&format!("{APPLICATION}?order=last_seen&ordered=&after=0.dev-3")).await;
    assert!(reordered.html.contains("1–3 of 3 devices."), "it begins anew: {}", reordered.html);
    let none = visitor.get(&format!("{APPLICATION}?silent=1h&search=dev-1")).await;
    assert!(
        none.html.contains("Every device that contains “dev-1” has been seen since then, or there is none."),
        "{}",
        none.html
    );
    let wrong = visitor.get(&format!("{APPLICATION}?silent=%3Cb%3E&search=dev-1&device=dev-2")).await;
    assert!(wrong.status == 200 && !wrong.html.contains("<b>"), "{}: {}", wrong.status, wrong.html);
    for expected in ["“Not seen since” not valid: must be a time such as", "type=\"search\" value=\"dev-1\""] {
        assert!(wrong.html.contains(expected), "{expected}: {}", wrong.html);
    }
    assert_eq!((wrong.value("silent"), wrong.value("device")), ("<b>".to_owned(), "dev-2".to_owned()));
    assert!(!wrong.html.contains("<table"), "no devices are shown: {}", wrong.html);
}
