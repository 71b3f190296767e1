//! Codecs that somebody breaks in a folder of the page can be mended there, and stay in their own files.

use fantoccini::key::Key;
use serde_json::json;

use super::{HALF, TREE, WRONG, choose, give};
use crate::{
    browser::DESK,
    playground::page::{METER, ask, open, paste, returns, shows},
};

/// The text of the examples.
const EXAMPLES: &str = "return document.getElementById('folder-text').value;";

// Conformance: playground
#[tokio::test]
async fn a_codec_whose_examples_are_broken_is_opened_again_to_be_mended() {
    let Some((_playground, browser, _dir)) = open("playground-folder-broken", DESK).await else { return };
    give(&browser, &TREE).await;
    browser.click("#folder-details summary").await;
    browser.click("#folder-open").await;
    shows(&browser, "folder-said", "8 codecs").await;
    choose(&browser, "folder-codec", "own/meter").await;
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    returns(&browser, EXAMPLES, json!(WRONG)).await;
    paste(&browser, "folder-text", "examples: {").await;
    shows(&browser, "folder-verdict", "The codec cannot be read from its files.").await;
    choose(&browser, "folder-codec", "alone").await;
    shows(&browser, "folder-verdict", "The codec has no examples.").await;
    choose(&browser, "folder-codec", "own/meter").await;
    shows(&browser, "folder-said", "own/meter is not there any more").await;
    returns(&browser, EXAMPLES, json!("examples: {")).await;
    assert_eq!(browser.value("#text").await, HALF);
    paste(&browser, "folder-text", WRONG).await;
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    shows(&browser, "folder-save", "Nothing to save").await;
}

// Conformance: playground
#[tokio::test]
async fn what_is_typed_while_results_are_written_into_examples_stays() {
    let Some((_playground, browser, _dir)) = open("playground-folder-typed", DESK).await else { return };
    give(&browser, &TREE).await;
    browser.click("#folder-details summary").await;
    browser.click("#folder-open").await;
    shows(&browser, "folder-said", "8 codecs").await;
    choose(&browser, "folder-codec", "own/meter").await;
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    returns(&browser, EXAMPLES, json!(WRONG)).await;
    let typing = "document.getElementById('folder-update').click(); const area = document.getElementById('folder-text'); \
                  area.value += '# mine'; area.dispatchEvent(new Event('input', { bubbles: true }));";
    ask(&browser, typing).await;
    shows(&browser, "folder-said", "Nothing was replaced, because a file has changed meanwhile").await;
    let mine = json!(format!("{WRONG}# mine"));
    assert_eq!(ask(&browser, EXAMPLES).await, mine);
    browser.click("#folder-update").await;
    shows(&browser, "folder-verdict", "2 examples: 2 passed.").await;
    let replaced = json!(format!("{}# mine", WRONG.replace("level: 6", "level: 3")));
    returns(&browser, EXAMPLES, replaced).await;
}

/// Returns true if the address is another one than it was, as it becomes some time after what is in the page.
const IS_ELSEWHERE: &str = "const is = location.hash !== (window.before ?? ''); \
     if (is) window.before = location.hash; return is;";

// Conformance: playground
#[tokio::test]
async fn undo_brings_no_other_text_into_a_file_and_a_step_back_what_was_typed() {
    let Some((_playground, browser, _dir)) = open("playground-folder-undone", DESK).await else { return };
    returns(&browser, IS_ELSEWHERE, json!(true)).await;
    give(&browser, &TREE).await;
    browser.click("#folder-details summary").await;
    browser.click("#folder-open").await;
    shows(&browser, "folder-said", "8 codecs").await;
    choose(&browser, "folder-codec", "own/meter").await;
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    ask(&browser, "document.getElementById('text-code').focus();").await;
    browser.press_with(Key::Control, 'z').await;
    assert_eq!(browser.value("#text").await, HALF);
    shows(&browser, "folder-save", "Nothing to save").await;
    browser.press("1").await;
    shows(&browser, "folder-save", "Save 1 file").await;
    browser.press_with(Key::Control, 'z').await;
    browser.press_with(Key::Control, 'z').await;
    assert_eq!(browser.value("#text").await, HALF);
    shows(&browser, "folder-save", "Nothing to save").await;
    returns(&browser, IS_ELSEWHERE, json!(true)).await;
    ask(&browser, "history.back();").await;
    shows(&browser, "folder-verdict", "Another codec is in the editor.").await;
    returns(&browser, "return document.getElementById('text').value;", json!(METER)).await;
    let none: Vec<String> = vec![];
    assert_eq!(browser.complaints().await, none);
}
