//! Reports as pages, in a real browser: they load nothing, run nothing, and are for everyone's eyes.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    browser::{DESK, driver::Browser, driver::Look},
    harness::{airlock, printed, run},
};

const DOOR: &str = "function count(bytes) {
  var n = 0;
  for (var i = 0; i < bytes.length; i++) {
    n += bytes[i];
  }
  return n;
}
function decodeUplink(input) {
  if (input.fPort !== 1) {
    throw new Error('a port that <nobody> & nothing sends on');
  }
  return { data: { opened: count(input.bytes), closed: input.bytes[1] === 0 } };
}
function encodeDownlink(input) {
  return { bytes: [input.data.locked ? 1 : 0], fPort: 2 };
}
";
const EXAMPLES: &str = "examples:
  - { description: Opened twice, port: 1, bytes: 02 00, output: { data: { opened: 2, closed: true } } }
  - { description: Opened <b>often</b>, port: 1, bytes: ff ff, output: { data: { opened: 511, closed: true } } }
  - { description: Another port, port: 9, bytes: 02 00, output: { data: {} } }
";
const THERMOMETER: &str = "function decodeUplink(input) {
  return { data: { temperature: input.bytes[0] / 2 } };
}
";
const WARM: &str = "examples:
  - { description: 21.5 °C, port: 1, bytes: '2b', output: { data: { temperature: 21.5 } } }
";

/// Writes the pages into `dir`.
fn write(dir: &Path) {
    for (name, text) in [
        ("door.js", DOOR),
        ("door.test.yaml", EXAMPLES),
        ("thermometer.js", THERMOMETER),
        ("thermometer.test.yaml", WARM),
        ("broken.js", "function decodeUplink( {\n"),
        ("broken.test.yaml", WARM),
        ("bad.test.yaml", "examples: ["),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
    let functions = |arguments: &[&str]| run(airlock(dir).arg("functions").args(arguments), "");
    let tested = functions(&["test", ".", "--coverage", "--report", "html=test.html"]);
    assert_eq!(tested.status.code(), Some(2));
    let passed = functions(&["test", "thermometer.js", "--report", "html=passed.html"]);
    assert!(passed.status.success());
    let bench = functions(&["bench", "door.js", "thermometer.js", "broken.js", "--count", "200", "--format", "html"]);
    fs::write(dir.join("bench.html"), bench.stdout).unwrap();
    printed(&functions(&["profile", "door.js", "--hex", "01020304", "--svg", "flame.svg"]));
}

async fn look(name: &'static str, look: Look) {
    let dir = tempfile::tempdir().unwrap();
    let base = format!("file://{}", dir.path().display());
    let Some(browser) = Browser::start(&base, name, look).await else { return };
    write(dir.path());
    let ask = async |script: &str| -> Value { browser.client.execute(script, vec![]).await.unwrap() };
    for (page, heading) in [("test", "Tests of payload functions"), ("bench", "What payload functions cost")] {
        browser.open(&format!("/{page}.html")).await;
        browser.wait_for(heading).await;
        browser.look(page).await;
        let loaded = ask("return [document.scripts.length, performance.getEntriesByType('resource').length];").await;
        assert_eq!(loaded, json!([0, 0]), "{page}");
        let broken =
            "return [...document.querySelectorAll('nav a')].filter(a => !document.querySelector(a.hash)).length;";
        assert_eq!(ask(broken).await, 0, "{page} has links to nothing");
    }
    // Times are drawn of all messages, and fuel is compared if there are several.
    browser.open("/bench.html").await;
    let plots = "const sections = [...document.querySelectorAll('section')];
        const of = id => sections.find(section => section.querySelector('h2').textContent === id);
        const bars = [...of('door').querySelectorAll('td.plot .share')].map(bar => bar.style.width);
        return [of('door'), of('thermometer')].map(section => [section.querySelectorAll('svg rect').length > 0,
            section.querySelectorAll('td.plot').length]).concat([bars.length, bars[0]]);";
    assert_eq!(ask(plots).await, json!([[true, 3], [true, 0], 3, "100%"]));
    let text =
        "return [document.querySelectorAll('b').length, document.body.textContent.includes('<nobody> & nothing')];";
    browser.open("/test.html").await;
    assert_eq!(ask(text).await, json!([0, true]));
    // A page with one section has nothing to link to.
    browser.look_at_report("/passed.html", "Tests of payload functions").await;
    browser.open("/flame.svg").await;
    let drawn = "return [document.documentElement.tagName, document.querySelectorAll('g > rect').length > 2, \
                 document.querySelector('parsererror')];";
    assert_eq!(ask(drawn).await, json!(["svg", true, null]));
}

// Conformance: functions test, bench, profile: reports for people
#[tokio::test]
async fn reports_are_for_everyone_and_load_nothing() {
    look("report", DESK).await;
}

// Conformance: functions test, bench, profile: reports for people
#[tokio::test]
async fn reports_are_readable_on_a_phone_in_dark_mode() {
    look("report-phone", Look { width: 360, dark: true, ..DESK }).await;
}
