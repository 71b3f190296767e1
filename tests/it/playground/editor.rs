//! The editor of the page in a real browser: keys, typing while it loads, highlighting, search.

use fantoccini::key::Key;
use serde_json::json;

use super::page::{FOCUS, METER, ask, open, returns, shows};
use crate::browser::DESK;

// Conformance: playground
#[tokio::test]
async fn tab_leaves_the_editor_unless_somebody_lets_it_indent() {
    let Some((_playground, browser, _dir)) = open("tab", DESK).await else { return };
    let (tab, escape) = (Key::Tab.to_string(), Key::Escape.to_string());
    browser.tab_to("#text-code").await;
    browser.press(&tab).await;
    assert_ne!(ask(&browser, FOCUS).await, "text-code");
    assert_eq!(browser.value("#text").await, METER);
    ask(&browser, "document.getElementById('text-code').focus();").await;
    browser.press_with(Key::Control, 'm').await;
    shows(&browser, "editor", "Tab indents now").await;
    browser.press(&tab).await;
    assert_eq!(ask(&browser, FOCUS).await, "text-code");
    assert_eq!(browser.value("#text").await, format!("  {METER}"));
    browser.press(&format!("{escape}{tab}")).await;
    assert_ne!(ask(&browser, FOCUS).await, "text-code");
    ask(&browser, "document.getElementById('text-code').focus();").await;
    browser.press_with(Key::Control, 'z').await;
    assert_eq!(browser.value("#text").await, METER);
}

/// An editor that takes the place of a text area in which somebody is typing.
const LATE: &str = "const [done] = arguments, area = document.createElement('textarea'), label = document.createElement('label'); \
     area.id = label.htmlFor = 'late'; document.querySelector('main').append(label, area); \
     area.value = 'one\\ntwo'; area.focus(); area.setSelectionRange(4, 4); \
     import(new URL('editor/code_editor.js', location)).then(({ CodeEditor }) => { new CodeEditor(area); done(document.activeElement.id); });";

// Conformance: playground
#[tokio::test]
async fn whoever_types_while_the_editor_loads_goes_on_in_it() {
    let Some((_playground, browser, _dir)) = open("late", DESK).await else { return };
    assert_eq!(browser.client.execute_async(LATE, vec![]).await.unwrap(), "late-code");
    browser.press("2").await;
    assert_eq!(browser.value("#late").await, "one\n2two");
}

// Conformance: playground
#[tokio::test]
async fn the_source_is_highlighted_and_searched_within_the_policy() {
    let Some((_playground, browser, _dir)) = open("highlighted", DESK).await else { return };
    let colours = "const colour = (text) => getComputedStyle([...document.querySelectorAll('.cm-line span')].find((part) => part.textContent === text)).color; \
                   return new Set(['function', \"'short'\", '3', 'decodeUplink'].map(colour)).size;";
    assert_eq!(ask(&browser, colours).await, 4);
    ask(&browser, "document.getElementById('text-code').focus();").await;
    browser.press_with(Key::Control, 'f').await;
    browser.press("input").await;
    returns(&browser, "return document.querySelectorAll('.cm-searchMatch').length > 3;", json!(true)).await;
    browser.look("playground-search").await;
    assert_eq!(browser.value("#text").await, METER);
    let none: Vec<String> = vec![];
    assert_eq!(browser.complaints().await, none);
    ask(
        &browser,
        "const style = document.createElement('style'); style.textContent = 'p {}'; document.head.append(style);",
    )
    .await;
    let refused = browser.complaints().await;
    assert!(refused.iter().any(|complaint| complaint.contains("Content Security Policy")), "{refused:?}");
}
