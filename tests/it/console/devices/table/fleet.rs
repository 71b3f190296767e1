//! The table of devices of a large application: what is counted, found, sorted and changed is in all pages.

use std::{collections::BTreeSet, time::Duration};

use api::handler::SimulatedUplinkMessage;
use futures::{StreamExt, stream};

use crate::{
    console::{visitor, visitor::Visitor},
    harness::{Network, Owner, device},
};

const APPLICATION: &str = "/console/applications/alice-app";
const CHANGE: &str = "/console/applications/alice-app/change-devices";
const DEVICES: usize = 2000;
const HALLS: usize = 40;
/// Of so many devices, one was heard.
const HEARD_ONE_OF: usize = 8;

fn name(number: usize) -> String {
    format!("sensor-{number:04}")
}

/// Registers a device, with its hall as an attribute.
async fn register(alice: &Owner, number: usize) {
    let mut device: api::handler::Device = device(&alice.app_id, &name(number)).into();
    device.attributes = [("hall".to_owned(), format!("H-{:02}", number % HALLS))].into();
    alice.handler.set_device(device).await.unwrap();
}

/// Sends an uplink of each of these devices.
async fn hear(alice: &Owner, numbers: impl Iterator<Item = usize>) {
    let uplink = |number| SimulatedUplinkMessage {
        app_id: alice.app_id.to_string(),
        dev_id: name(number),
        payload: vec![8, 52],
        port: 1,
    };
    let uplinks: Vec<_> = numbers.map(uplink).collect();
    let mut answers = alice.handler.simulate_uplinks(stream::iter(uplinks)).await.unwrap();
    while let Some(answer) = answers.next().await.unwrap() {
        assert!(answer.error.is_none(), "{answer:?}");
    }
}

/// The ids of the devices on all pages from this one on.
async fn all_pages(visitor: &Visitor, query: &str) -> Vec<String> {
    let (mut ids, mut path) = (Vec::new(), format!("{APPLICATION}?{query}"));
    loop {
        let page = visitor.get(&path).await;
        let links = page.html.split("<td class=\"id\"><a href=\"").skip(1);
        let id = |link: &str| link.split('"').next().unwrap().rsplit('/').next().unwrap().to_owned();
        ids.extend(links.map(id));
        if !page.html.contains(">More devices") {
            return ids;
        }
        path = format!("{APPLICATION}?{query}&after={}", page.value("after"));
    }
}

// Conformance: console: battery and silence of devices
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_devices_are_counted_found_and_chosen_over_all_pages() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (alice, visitor) = visitor(&network).await;
    stream::iter(0..DEVICES).for_each_concurrent(16, |number| register(&alice, number)).await;
    hear(&alice, (0..DEVICES).step_by(HEARD_ONE_OF)).await;
    clock.advance(Duration::from_secs(45 * 60));
    hear(&alice, [HALLS + 1, 2 * HALLS + 1].into_iter()).await;

    // With the device that each visitor has.
    let table = visitor.get(APPLICATION).await;
    for expected in ["1–50 of 2,001 devices.", "Change all 2,001"] {
        assert!(table.html.contains(expected), "{expected}: {}", table.html);
    }
    let one = visitor.get(&format!("{APPLICATION}?search=SENSOR-1777")).await;
    assert!(one.html.contains("1 of 1 device that matches."), "{}", one.html);
    let hall: BTreeSet<_> = (0..DEVICES).filter(|number| number % HALLS == 1).map(name).collect();
    let found = all_pages(&visitor, "search=h-01").await;
    assert_eq!((found.len(), &BTreeSet::from_iter(found)), (DEVICES / HALLS, &hall));

    let heard = [name(HALLS + 1), name(2 * HALLS + 1)];
    let silent: Vec<_> = (0..DEVICES).map(name).filter(|id| !heard.contains(id)).collect();
    let in_some = |id: &String| silent.iter().any(|silent| silent == id);
    let found = all_pages(&visitor, "silent=30m&search=sensor-00").await;
    assert!(found.iter().all(in_some) && found.is_sorted(), "{found:?}");
    assert_eq!(found.len(), 100 - heard.len());
    let change = visitor.get(&format!("{CHANGE}?silent=30m&search=h-01&all=yes")).await;
    let chosen: BTreeSet<_> = change.value("ids").split(' ').map(str::to_owned).collect();
    let expected: BTreeSet<_> = hall.into_iter().filter(|id| !heard.contains(id)).collect();
    assert_eq!(chosen, expected);

    let ids = change.value("ids");
    let set = [("ids", ids.as_str()), ("key", "silent"), ("value", "yes"), ("step", "set")];
    let changed = visitor.post(CHANGE, &set).await;
    assert!(changed.html.contains("48 changed, 0 were so already, 0 failed, 0 not begun"), "{}", changed.html);
    let found = visitor.get(&format!("{APPLICATION}?search=silent")).await;
    assert!(found.html.contains("1–48 of 48 devices that match."), "{}", found.html);

    let by_time = all_pages(&visitor, "order=last_seen&search=h-01").await;
    assert_eq!((by_time.len(), by_time[DEVICES / HALLS - 2..].to_vec()), (DEVICES / HALLS, heard.to_vec()));
    // What uplinks say is there for each device, however many uplinks of others came later.
    let first = visitor.get(&format!("{APPLICATION}?search=sensor-0000")).await;
    assert!(!first.html.contains("data-label=\"Last seen\">never"), "{}", first.html);
    network.stack.stop().await;
}
