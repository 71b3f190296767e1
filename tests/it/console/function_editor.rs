//! The editor of functions in a real browser: what is typed there is what is sent, and the line that failed is marked.

use std::time::Duration;

use fantoccini::{Locator, key::Key};
use serde_json::{Value, json};

use super::{
    DECODER,
    browsing::{ask, logged_in},
    newest, visitor,
};
use crate::{
    browser::{
        DESK,
        console::wait_for_text,
        driver::{Browser, Look},
    },
    harness::{MESSAGE_TIMEOUT, Network},
};

const PATH: &str = "/console/applications/alice-app/functions";
const FAILING: &str = "function Decoder(bytes) {\n  var first = bytes[0];\n  throw new Error('<b>' + first);\n}";
const MENDED: &str = "function Decoder(bytes) {\n  return { n: bytes[0] };\n}";
/// Longer than a token is valid, and shorter than a session of the account site.
const EXPIRES: Duration = Duration::from_secs(2 * 3600);
/// Maximum size of the scripts that a page without an editor loads, compressed.
const SCRIPT_BYTES_MAX: u64 = 60_000;

/// The number of scripts that a page has loaded, their length, compressed, and that of those of third parties.
const SCRIPTS: &str = "const done = arguments[0]; \
     const names = new Set(performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => new URL(name).pathname.endsWith('.js'))); \
     const length = async (name) => { const packed = (await fetch(name)).body.pipeThrough(new CompressionStream('gzip')); \
     return [name.includes('/vendor/'), (await new Response(packed).arrayBuffer()).byteLength]; }; \
     Promise.all([...names].map(length)).then((all) => done([all.length, \
     all.reduce((sum, [, bytes]) => sum + bytes, 0), all.reduce((sum, [isVendored, bytes]) => sum + (isVendored ? bytes : 0), 0)]));";

/// Resolves once the line that is marked is within the part of the editor that is seen.
const IN_SIGHT: &str = "const done = arguments[0]; const look = () => { \
     const line = document.querySelector('.cm-failed'), at = line?.getBoundingClientRect(); \
     const seen = line?.closest('.cm-scroller').getBoundingClientRect(); \
     if (at?.top >= seen?.top && at.bottom <= seen.bottom) done(scrollY); else requestAnimationFrame(look); }; look();";

/// The height of what is empty between the heading of the page and that of the results.
const GAP: &str = "const [above, below] = ['.head', '#trials-heading'].map((part) => document.querySelector(part).getBoundingClientRect()); \
     return below.top - above.bottom;";

async fn open(browser: &Browser) {
    browser.open(PATH).await;
    browser.wait_for("Functions").await;
    browser.client.wait().at_most(MESSAGE_TIMEOUT).for_element(Locator::Css("#decoder-code")).await.unwrap();
}

/// The lines that are marked, with the messages behind them.
async fn marked(browser: &Browser) -> Value {
    browser.client.wait().at_most(MESSAGE_TIMEOUT).for_element(Locator::Css(".cm-failed")).await.unwrap();
    ask(browser, "return [...document.querySelectorAll('.cm-failed')].map((line) => line.textContent);").await
}

async fn edit(name: &'static str, look: Look) {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[7], 1).await.unwrap();
    let Some(browser) = logged_in(&network, name, look).await else { return };
    browser.open(&format!("/console/applications/alice-app/messages/{}", newest(&alice).await)).await;
    browser.click("a.button[href*='/functions']").await;
    let line = "    throw new Error('<script>too short</script>');Error: <script>too short</script>";
    assert_eq!(marked(&browser).await, json!([line]));
    assert_eq!(ask(&browser, "return document.getElementById('decoder').hidden;").await, true);
    browser.write("#decoder", FAILING).await;
    browser.click("button[value=try]").await;
    wait_for_text(&browser, "span", "still failing").await;
    assert_eq!(marked(&browser).await, json!(["  throw new Error('<b>' + first);Error: <b>7"]));
    assert_eq!(browser.value("#decoder").await, FAILING);
    let gap = ask(&browser, GAP).await.as_f64().unwrap();
    assert!((0.0..30.0).contains(&gap), "{gap} pixels are empty between the heading and the results");
    browser.look("console-editor-failed").await;

    browser.write("#decoder", "function Decoder( {").await;
    browser.click("button[value=save]").await;
    browser.wait_for_refusal().await;
    let refused = marked(&browser).await;
    assert!(refused[0].as_str().unwrap().starts_with("function Decoder( {"), "{refused}");
    let said = ask(&browser, "return document.querySelector('.problem p').textContent;").await;
    assert!(said.as_str().unwrap().contains("SyntaxError") && !said.as_str().unwrap().contains(" | "), "{said}");
    assert_eq!(alice.handler.get_version(&alice.app_id, 0).await.unwrap().number, 1);

    browser.write("#decoder", MENDED).await;
    ask(&browser, "document.getElementById('decoder-code').focus();").await;
    browser.press_with(Key::Control, char::from(Key::End)).await;
    browser.press("\n// typed").await;
    browser.click("button[value=save]").await;
    wait_for_text(&browser, "p", "Saved.").await;
    let live = alice.handler.get_version(&alice.app_id, 0).await.unwrap().functions.unwrap();
    assert_eq!(live.decoder, format!("{MENDED}\n// typed"));
    // A page with status 400 is a complaint as well.
    let complaints = browser.complaints().await;
    assert!(!complaints.iter().any(|complaint| complaint.contains("Security Policy")), "{complaints:?}");
}

// Conformance: console: functions edited with highlighting; the failed line is marked
#[tokio::test]
async fn what_is_typed_into_the_editor_is_tried_and_saved() {
    edit("editor-desk", Look { width: 1280, ..DESK }).await;
}

// Conformance: console: functions edited with highlighting; the failed line is marked
#[tokio::test]
async fn what_is_typed_into_the_editor_is_tried_and_saved_on_a_phone() {
    edit("editor-phone", Look { width: 375, dark: true, ..DESK }).await;
}

// Conformance: console: functions edited with highlighting; the failed line is marked
#[tokio::test]
async fn a_failed_line_of_a_long_function_is_in_sight_and_in_words() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    let before = format!("  // {}\n", "many words ".repeat(20)).repeat(200);
    let decoder = format!("function Decoder(bytes) {{\n{before}  throw new Error('too short');\n}}");
    alice.set_functions([&decoder, "", ""]).await.unwrap();
    alice.simulate("dev-1", &[7], 1).await.unwrap();
    let look = Look { width: 375, ..DESK };
    let Some(browser) = logged_in(&network, "editor-long", look).await else { return };
    browser.open(&format!("/console/applications/alice-app/messages/{}", newest(&alice).await)).await;
    browser.click("a.button[href*='/functions']").await;
    browser.wait_for("Functions").await;
    let scrolled = browser.client.execute_async(IN_SIGHT, vec![]).await.unwrap();
    assert_eq!(scrolled, 0, "the page stays where it is");
    assert_eq!(marked(&browser).await, json!(["  throw new Error('too short');Error: too short"]));
    let described = "return document.getElementById('decoder-code').getAttribute('aria-describedby').split(' ') \
                     .map((id) => document.getElementById(id).textContent).join(' ');";
    let described = ask(&browser, described).await;
    assert!(described.as_str().unwrap().contains("Line 202: Error: too short"), "{described}");
    browser.look("console-editor-long").await;
}

// Conformance: console: functions edited with highlighting; the failed line is marked
#[tokio::test]
async fn what_is_typed_outlives_the_login_and_another_editor() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (alice, _visitor) = visitor(&network).await;
    let look = Look { width: 375, ..DESK };
    let Some(browser) = logged_in(&network, "editor-conflict", look).await else { return };
    open(&browser).await;
    browser.write("#decoder", MENDED).await;
    let theirs = format!("function Decoder() {{ return {{ theirs: '{}' }}; }}", "long ".repeat(40));
    alice.set_functions([&theirs, "", ""]).await.unwrap();
    clock.advance(EXPIRES);
    browser.click("button[value=save]").await;
    wait_for_text(&browser, "p", "may not have been saved").await;
    assert_eq!(browser.value("#decoder").await, MENDED);
    browser.look("console-editor-draft").await;
    browser.click("button[value=save]").await;
    wait_for_text(&browser, "h2", "Someone else has saved version 2").await;
    wait_for_text(&browser, "pre", "theirs").await;
    assert_eq!(browser.value("#decoder").await, MENDED);
    browser.look("console-editor-conflict").await;
    browser.click("button[value=save]").await;
    wait_for_text(&browser, "p", "Saved.").await;
    assert_eq!([browser.value("#decoder").await, browser.value("input[name=base]").await], [MENDED, "3"]);
}

// Conformance: console: functions edited with highlighting; the failed line is marked
#[tokio::test]
async fn a_selection_is_typed_over_within_the_policy() {
    let network = Network::start().await;
    let (_alice, _visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "editor-selection", DESK).await else { return };
    open(&browser).await;
    ask(&browser, "document.getElementById('decoder-code').focus();").await;
    browser.press_with(Key::Control, 'a').await;
    browser.press("x = 1").await;
    assert_eq!(browser.value("#decoder").await, "x = 1");
    let complaints = browser.complaints().await;
    assert!(!complaints.iter().any(|complaint| complaint.contains("Security Policy")), "{complaints:?}");
}

// Conformance: console: functions edited with highlighting; the failed line is marked
#[tokio::test]
async fn a_version_is_only_read() {
    let network = Network::start().await;
    let (_alice, _visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "editor-version", Look { width: 1280, ..DESK }).await else { return };
    browser.open("/console/applications/alice-app/versions/1").await;
    browser.client.wait().at_most(MESSAGE_TIMEOUT).for_element(Locator::Css("#source-1-code")).await.unwrap();
    ask(&browser, "document.getElementById('source-1-code').focus();").await;
    browser.press("typed").await;
    assert_eq!(ask(&browser, "return document.getElementById('source-1-code').ariaReadOnly;").await, "true");
    assert_eq!(browser.value("#source-1").await, DECODER);
    browser.look("console-version").await;
}

// Conformance: console: functions edited with highlighting; the failed line is marked
#[tokio::test]
async fn functions_are_edited_as_text_if_the_editor_does_not_load() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "editor-missing", DESK).await else { return };
    browser.tell("Network.enable", json!({})).await;
    browser.tell("Network.setBlockedURLs", json!({"urls": ["*codemirror.js*"]})).await;
    browser.open(PATH).await;
    browser.wait_for("Functions").await;
    // A page has loaded only when its modules have run, or cannot.
    assert_eq!(ask(&browser, "return document.querySelectorAll('.cm-editor').length;").await, 0);
    let area = browser.client.find(Locator::Css("#decoder")).await.unwrap();
    area.clear().await.unwrap();
    area.send_keys(MENDED).await.unwrap();
    browser.click("button[value=save]").await;
    wait_for_text(&browser, "p", "Saved.").await;
    let live = alice.handler.get_version(&alice.app_id, 0).await.unwrap().functions.unwrap();
    assert_eq!(live.decoder, MENDED);
}

// Conformance: console: functions edited with highlighting; the failed line is marked
#[tokio::test]
async fn only_pages_with_an_editor_load_much_script() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[7], 1).await.unwrap();
    let message = format!("/messages/{}", newest(&alice).await);
    let Some(browser) = logged_in(&network, "scripts", DESK).await else { return };
    let application = "/console/applications/alice-app";
    for page in [
        "",
        "/messages",
        message.as_str(),
        "/live",
        "/devices/dev-1",
        "/charts?device=dev-1",
        "/import-devices",
        "/webhooks",
        "/versions",
    ] {
        browser.open(&format!("{application}{page}")).await;
        let [count, bytes, vendored] = scripts(&browser).await;
        assert!(count > 0 && bytes < SCRIPT_BYTES_MAX, "{page}: {bytes} bytes in {count} scripts");
        assert_eq!(vendored, 0, "{page}");
    }
    open(&browser).await;
    let [_, bytes, vendored] = scripts(&browser).await;
    assert!(vendored > 0 && bytes - vendored < SCRIPT_BYTES_MAX, "{bytes} bytes, of which {vendored} are of others");
}

/// The numbers of [`SCRIPTS`] for the page.
async fn scripts(browser: &Browser) -> [u64; 3] {
    serde_json::from_value(browser.client.execute_async(SCRIPTS, vec![]).await.unwrap()).unwrap()
}
