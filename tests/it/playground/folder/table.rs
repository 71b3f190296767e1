//! The table of all codecs of a folder: those that fail come first, and each opens from there.

use fantoccini::{Locator, key::Key};
use serde_json::{Value, json};

use super::{HALF, TREE, WRONG, choose, give};
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
    },
    playground::page::{ask, open, paste, returns, shows},
};

/// The rows of the table, each as one text.
const ROWS: &str = "return [...document.querySelectorAll('#folder-codecs tbody tr')] \
                    .map((row) => [...row.cells].map((cell) => cell.textContent).join(' | '));";
const IS_OWN_MENDED: &str = "return [...document.querySelectorAll('#folder-codecs tbody tr')].slice(-2) \
                             .some((row) => row.textContent.startsWith('own/meter2 passed'));";
/// The codec that the table marks, and the one that has the focus.
const MARKED: &str = "return [document.querySelector('#folder-codecs [aria-current=true]').textContent, \
                      document.activeElement.textContent];";
/// The number of codecs that Tab stops at.
const STOPS: &str = "return document.querySelectorAll('#folder-codecs tbody button[tabindex=\"0\"]').length;";
const IS_OPENED: &str = "return document.getElementById('payloads').value.startsWith('0: 00');";
/// Examples that run until they are out of fuel.
const ENDLESS: usize = 1000;

async fn rows(browser: &Browser) -> Vec<String> {
    let rows: Vec<Value> = ask(browser, ROWS).await.as_array().unwrap().clone();
    rows.iter().map(|row| row.as_str().unwrap().to_owned()).collect()
}

async fn compare_in(name: &'static str, look: Look) {
    let Some((_playground, browser, _dir)) = open(name, look).await else { return };
    give(&browser, &TREE).await;
    browser.click("#folder-details summary").await;
    browser.click("#folder-open").await;
    shows(&browser, "folder-codecs", "8 codecs: 1 cannot be run, 6 fail.").await;
    let all = rows(&browser).await;
    assert!(all[0].starts_with("unloaded/meter | cannot be loaded: the decoder"), "{all:?}");
    assert!(all[1].starts_with("line | 1 of 1 failed, 1 with an error | "), "{all:?}");
    assert_eq!(all[7], "alone | none | 5 of 8 networks");
    browser.look("playground-folder-codecs").await;
    choose(&browser, "folder-network", "The Things Network 2").await;
    shows(&browser, "folder-codecs", "1 cannot be run, 6 fail, 1 does not run on this network.").await;
    assert_eq!(rows(&browser).await[7], "alone | none | 1 error");
    choose(&browser, "folder-network", "all networks").await;
    ask(&browser, "document.querySelector('#folder-codecs tbody button').focus();").await;
    for key in [Key::Down, Key::Down, Key::Enter] {
        browser.press(&key.to_string()).await;
    }
    returns(&browser, MARKED, json!(["milesight/th1", "milesight/th1"])).await;
    let own = Locator::XPath("//*[@id='folder-codecs']//button[.='own/meter']");
    browser.client.find(own).await.unwrap().click().await.unwrap();
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    assert_eq!(browser.value("#text").await, HALF);
    ask(&browser, "document.querySelector('#folder-codecs [aria-current=true]').focus();").await;
    browser.press(&Key::Down.to_string()).await;
    returns(&browser, STOPS, json!(1)).await;
    browser.click("#folder-update").await;
    shows(&browser, "folder-codecs", "8 codecs: 1 cannot be run, 5 fail.").await;
    returns(&browser, IS_OWN_MENDED, json!(true)).await;
}

// Conformance: playground
#[tokio::test]
async fn all_codecs_of_a_folder_are_compared_and_those_that_fail_come_first() {
    compare_in("playground-folder-codecs-desk", Look { width: 1280, ..DESK }).await;
    compare_in("playground-folder-codecs-phone", Look { width: 375, dark: true, ..DESK }).await;
}

// Conformance: playground
#[tokio::test]
async fn whoever_types_need_not_wait_for_the_codecs_of_a_folder_and_can_stop_them() {
    let Some((_playground, browser, _dir)) = open("playground-folder-codecs-stopped", DESK).await else { return };
    let endless = format!("examples:\n{}", "  - {bytes: '00', outcome: timeout}\n".repeat(ENDLESS));
    let code = "function Decoder(bytes) { while (bytes[0] === 0); return { level: bytes[0] }; }\n";
    give(&browser, &[("a.js", code), ("a.test.yaml", &endless), ("b.js", code), ("b.test.yaml", &endless)]).await;
    browser.click("#folder-details summary").await;
    browser.click("#folder-open").await;
    shows(&browser, "folder-codecs", "Running the examples of 2 codecs").await;
    returns(&browser, IS_OPENED, json!(true)).await;
    paste(&browser, "payloads", "07").await;
    shows(&browser, "outcome", "level").await;
    browser.click("#folder-codecs .line button").await;
    shows(&browser, "folder-codecs", "2 codecs: no faults. Stopped before 2 of them.").await;
    browser.click("#folder-codecs .line button").await;
    shows(&browser, "folder-codecs", "Running the examples of 2 codecs").await;
}

// Conformance: playground
#[tokio::test]
async fn a_workbench_that_is_away_is_asked_for_once_and_not_for_each_codec() {
    let Some((_playground, browser, _dir)) = open("playground-folder-codecs-away", DESK).await else { return };
    give(&browser, &[("a.js", HALF), ("a.test.yaml", WRONG), ("b.js", HALF)]).await;
    browser.click("#folder-details summary").await;
    let away = "[window.asked, window.post] = [0, Worker.prototype.postMessage]; \
                Worker.prototype.postMessage = function (what) { \
                    if (what.question !== 'networks') return window.post.call(this, what); \
                    window.asked += 1; \
                    return this.onerror(); };";
    ask(&browser, away).await;
    browser.click("#folder-open").await;
    shows(&browser, "folder-codecs", "Stopped before 2 of them: its scripts cannot be loaded.").await;
    assert_eq!(ask(&browser, "return window.asked;").await, 1);
    ask(&browser, "Worker.prototype.postMessage = window.post;").await;
    browser.click("#folder-codecs .line button").await;
    shows(&browser, "folder-codecs", "2 codecs: 1 fails.").await;
}
