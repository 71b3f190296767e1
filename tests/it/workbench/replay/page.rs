//! The report of a replay as a page, in a real browser.

use std::fs;

use serde_json::{Value, json};

use super::{command, with_codec};
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
    },
    harness::run,
};

/// Uplinks of three days with every result, as ChirpStack publishes them, and a line that is none.
fn input() -> String {
    let uplinks = ["20", "21", "22"].into_iter().flat_map(|day| {
        [
            ("CVw=", json!({"celsius": 23.96, "port": 2})),
            ("CVw=", json!({"celsius": "<b>239.6</b>", "port": 2})),
            ("CVw=", Value::Null),
            ("CQ==", json!({"celsius": 1})),
            ("CQ==", Value::Null),
        ]
        .map(|(data, object)| {
            json!({
                "time": format!("2026-11-{day}T10:00:00Z"), "fPort": 2, "data": data, "object": object,
                "deviceInfo": {"devEui": "0102030405060708"},
            })
        })
    });
    uplinks.map(|uplink| format!("{uplink}\n")).collect::<String>() + "{broken\n"
}

async fn look(name: &'static str, look: Look) {
    let dir = with_codec();
    let base = format!("file://{}", dir.path().display());
    let Some(browser) = Browser::start(&base, name, look).await else { return };
    fs::write(dir.path().join("in.jsonl"), input()).unwrap();
    run(&mut command(dir.path(), "in.jsonl", &["--html", "replay.html"]), "");
    browser.look_at_report("/replay.html", "Replay of stored uplinks").await;
    let shown = "const texts = selector => [...document.querySelectorAll(selector)].map(one => one.textContent);
        const part = document.querySelector('[role=img] > .changed');
        return [texts('h2'), texts('.key span'), document.querySelectorAll('b').length,
            document.querySelector('[role=img]').ariaLabel,
            Math.round(100 * part.offsetWidth / part.parentElement.offsetWidth)];";
    let names = ["equal", "changed", "newly failing", "newly decoded", "still failing"];
    let headings = ["By day", "Changed", "Newly failing", "Still failing", "Newly decoded", "Not read"];
    let label = names.map(|name| format!("1 {name}")).join(", ");
    let expected = json!([headings, names.map(|name| format!("3 {name}")), 0, label, 20]);
    assert_eq!(browser.client.execute(shown, vec![]).await.unwrap(), expected);
}

// Conformance: Stored uplinks of other networks run through a codec
#[tokio::test]
async fn the_page_is_for_everyone_and_loads_nothing() {
    look("replay", DESK).await;
}

// Conformance: Stored uplinks of other networks run through a codec
#[tokio::test]
async fn the_page_is_readable_on_a_phone_in_dark_mode() {
    look("replay-phone", Look { width: 360, dark: true, ..DESK }).await;
}
