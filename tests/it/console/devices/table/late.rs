//! Rows of the table of devices whose uplinks were not found in time: a script completes them.

use serde_json::json;

use super::{APPLICATION, DECODER};
use crate::{
    browser::{DESK, console::wait_for_text},
    console::{
        browsing::{ask, logged_in},
        visitor,
    },
    harness::Network,
};

/// Makes the row of dev-2 one whose uplinks were not found, as the server writes it, and notes what is asked for from
/// then on. The first answer has no such row.
const MAKE_LATE: &str = "
    const row = document.querySelector('tr[data-key=dev-2]');
    row.dataset.late = '';
    for (const cell of row.querySelectorAll('[data-label]')) cell.textContent = 'not yet';
    for (const box of document.querySelectorAll('input[type=checkbox]')) box.click();
    const note = Object.assign(document.createElement('p'), { id: 'late' });
    document.querySelector('main').append(note);
    const ask = window.fetch;
    window.asked = [];
    window.fetch = (address, options) => {
        asked.push(new URL(address).searchParams.getAll('late').join());
        return asked.length > 1 ? ask(address, options) : Promise.resolve(new Response('<p>Empty.'));
    };
    const source = { type: 'module', src: '/console/assets/late_rows.js' };
    const script = Object.assign(document.createElement('script'), source);
    document.head.append(script);";
/// The request, the cells of both rows, the boxes that are ticked, and the number of rows that are late.
const SHOWN: &str = "
    const cells = (id) => [...document.querySelectorAll(`tr[data-key=${id}] [data-label]`)].slice(1);
    return [asked, ['dev-1', 'dev-2'].map((id) => cells(id).map((cell) => cell.textContent)),
            document.querySelectorAll('tr input:checked').length, document.querySelectorAll('[data-late]').length];";

// Conformance: console: battery and silence of devices
#[tokio::test(flavor = "multi_thread")]
async fn uplinks_that_were_not_found_in_time_are_looked_for_again() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.add_device("dev-2").await;
    alice.set_functions([DECODER, "", ""]).await.unwrap();
    for (dev_id, byte) in [("dev-1", 30), ("dev-2", 36)] {
        alice.simulate(dev_id, &[byte], 1).await.unwrap();
    }
    let table = visitor.get(&format!("{APPLICATION}?late=dev-2&late=unknown")).await;
    assert!(table.html.contains("3.6 V") && !table.html.contains("late_rows"), "nothing is late: {}", table.html);
    let Some(browser) = logged_in(&network, "late-rows", DESK).await else { return };
    browser.open(APPLICATION).await;
    browser.wait_for("Devices").await;
    ask(&browser, MAKE_LATE).await;
    wait_for_text(&browser, "p", "The uplinks of all devices were found.").await;
    let cells = json!([["3 V", "–"], ["3.6 V", "–"]]);
    assert_eq!(ask(&browser, SHOWN).await, json!([["dev-2", "dev-2"], cells, 2, 0]));
    network.stack.stop().await;
}
