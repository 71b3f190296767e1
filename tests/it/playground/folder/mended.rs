//! What somebody breaks in a folder of the page can be mended there, and stays in its own file.

use serde_json::json;

use super::{HALF, TREE, WRONG, choose, give};
use crate::{
    browser::DESK,
    playground::page::{open, paste, returns, shows},
};

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
    paste(&browser, "folder-text", "examples: {").await;
    shows(&browser, "folder-verdict", "The codec cannot be read from its files.").await;
    choose(&browser, "folder-codec", "alone").await;
    shows(&browser, "folder-verdict", "The codec has no examples.").await;
    choose(&browser, "folder-codec", "own/meter").await;
    shows(&browser, "folder-said", "own/meter is not there any more").await;
    returns(&browser, "return document.getElementById('folder-text').value;", json!("examples: {")).await;
    assert_eq!(browser.value("#text").await, HALF);
    paste(&browser, "folder-text", WRONG).await;
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    shows(&browser, "folder-save", "Nothing to save").await;
}
