//! The page in a real browser, served by `airlock playground`.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use fantoccini::{Locator, key::Key, wd::TimeoutConfiguration};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{check_equal, vectors::Vectors};
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
    },
    harness::{MESSAGE_TIMEOUT, airlock},
};

/// Functions that run until they are out of fuel, many times.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks at what is to change.
const PAUSE: Duration = Duration::from_millis(50);
/// The number of the line with the cursor.
const CURSOR_LINE: &str = "return document.querySelector('.cm-lineNumbers .cm-activeLineGutter').textContent;";
pub(super) const FOCUS: &str = "return document.activeElement.id;";
pub(super) const METER: &str = "function decodeUplink(input) {\n  if (input.bytes.length < 3) throw new Error('short');\n  return { data: { kind: input.bytes[0] > 9 ? 'b' : 'a', level: input.bytes[1] / 2 } };\n}\n\
                     function encodeDownlink(input) { return { fPort: 5, bytes: [input.data.level * 2] }; }\n\
                     function decodeDownlink(input) { return { data: { level: input.bytes[0] / 2 } }; }\n";
const EXAMPLES: &str = "examples:\n  - {bytes: '010203', port: 7}\n  - {bytes: '01'}\n  - {function: downlink-encode, input: {data: {level: 3}}}\n";
const MARKUP: &str = "function Decoder(bytes) { console.log('<b id=bold>'); if (bytes[0]) throw '<img src=x>'; return { '<img src=x>': '\\u202e<script>' }; }";

/// The command while it runs.
pub(super) struct Playground {
    child: Child,
    pub(super) url: String,
}

impl Playground {
    pub(super) fn start(dir: &Path, arguments: &[&str]) -> Self {
        let mut command: Command = airlock(dir);
        command.arg("playground").args(arguments).args(["--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.starts_with("Playground: ")).expect("it says where it is");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: line.split(' ').next_back().unwrap().to_owned() }
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The page with a codec and its examples; none where there is no browser.
pub(super) async fn open(name: &'static str, look: Look) -> Option<(Playground, Browser, tempfile::TempDir)> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("meter.js"), METER).unwrap();
    fs::write(dir.path().join("meter.test.yaml"), EXAMPLES).unwrap();
    let playground = Playground::start(dir.path(), &[dir.path().join("meter.js").to_str().unwrap()]);
    let browser = Browser::start(&playground.url, name, look).await?;
    browser.open("").await;
    shows(&browser, "verdict", "Decoded").await;
    settle(&browser).await;
    Some((playground, browser, dir))
}

/// Waits until all has run. The map and the fuel of lines come after the fields, and move what is about to be clicked.
pub(super) async fn settle(browser: &Browser) {
    browser.wait_until("html[data-ready]").await;
}

/// Waits until an element shows a text.
pub(super) async fn shows(browser: &Browser, id: &str, text: &str) {
    let path = format!("//*[@id='{id}'][contains(., \"{text}\")]");
    let found = browser.client.wait().at_most(MESSAGE_TIMEOUT).for_element(Locator::XPath(&path)).await;
    if found.is_err() {
        panic!("no {text:?} in {id}: {}", browser.client.source().await.unwrap());
    }
}

/// Puts a text into a field, or into the editor, at once, as pasting does.
pub(super) async fn paste(browser: &Browser, id: &str, text: &str) {
    if id == "text" {
        return browser.write("#text", text).await;
    }
    let script = "const field = document.getElementById(arguments[0]); field.value = arguments[1]; \
                  field.dispatchEvent(new Event('input', { bubbles: true }));";
    browser.client.execute(script, vec![json!(id), json!(text)]).await.unwrap();
}

pub(super) async fn ask(browser: &Browser, script: &str) -> Value {
    browser.client.execute(script, vec![]).await.unwrap()
}

/// Waits until a script returns a value.
pub(super) async fn returns(browser: &Browser, script: &str, value: Value) {
    let waits = async {
        while ask(browser, script).await != value {
            sleep(PAUSE).await;
        }
    };
    testing::soon(script, waits).await;
}

// Conformance: playground
#[tokio::test]
async fn the_sandbox_gives_in_chromium_what_it_gives_in_the_server() {
    let Some((_playground, browser, _dir)) = open("vectors", DESK).await else { return };
    let vectors = Vectors::new();
    let script = concat!(
        include_str!("vectors.js"),
        "const [{ limits, vectors }, done] = arguments;\n",
        "const files = [import(new URL('sandbox/sandbox.js', location)), fetch('guest.wasm').then((got) => got.arrayBuffer())];\n",
        "Promise.all(files).then(([sandbox, guest]) => done(outcomes(sandbox, new Uint8Array(guest), limits, vectors)));",
    );
    let patience = TimeoutConfiguration::new(Some(PATIENCE), None, None);
    browser.client.update_timeouts(patience).await.unwrap();
    let page = browser.client.execute_async(script, vec![vectors.to_json()]).await.unwrap();
    check_equal(&vectors, page.as_array().unwrap());
}

// Conformance: playground
#[tokio::test]
async fn a_file_is_opened_with_its_examples_and_each_runs() {
    let Some((_playground, browser, _dir)) = open("opened", DESK).await else { return };
    assert_eq!(browser.value("#text").await, METER);
    assert_eq!(browser.value("#payloads").await, "7: 010203\n0: 01");
    shows(&browser, "outcome", "level").await;
    shows(&browser, "rows", "2 messages, 1 failed").await;
    let result = "return document.querySelector(\"tr[data-place='0'] td:nth-child(4)\").textContent;";
    assert_eq!(ask(&browser, result).await, "{\"kind\":\"a\", \"level\":1}");
    let parts = "return [...document.querySelectorAll('summary h2')].map(({ nextElementSibling }) => nextElementSibling.textContent.length > 9);";
    assert_eq!(ask(&browser, parts).await, json!([true, true, true, true, true]), "each folded part says what it does");
    shows(&browser, "loaded", "Defines decoder (TS013), encoder (TS013)").await;
    shows(&browser, "encoded", "06 on port 5").await;
    shows(&browser, "encoded", "gives the same fields").await;
    browser.click("tr[data-place='1'] button").await;
    shows(&browser, "verdict", "Failed").await;
    shows(&browser, "outcome", "The decoder failed (line 2, column").await;
    let failed = "return [...document.querySelectorAll('.cm-failed')].map((line) => line.textContent);";
    assert_eq!(ask(&browser, failed).await, json!([format!("{}Error: short", METER.lines().nth(1).unwrap())]));
    assert_eq!(ask(&browser, "return document.getElementById('text-code').ariaInvalid;").await, "true");
    browser.click("#outcome .problem button").await;
    assert_eq!(ask(&browser, FOCUS).await, "text-code");
    assert_eq!(ask(&browser, CURSOR_LINE).await, "2");
    browser.click("tr[data-place='0'] button").await;
    returns(&browser, failed, json!([])).await;
}

// Conformance: playground
#[tokio::test]
async fn a_source_that_cannot_be_loaded_shows_its_line_and_no_older_result() {
    let Some((_playground, browser, _dir)) = open("unloaded", DESK).await else { return };
    paste(&browser, "text", "function decodeUplink(input) {\n  retur 1\n}").await;
    shows(&browser, "loaded", "The decoder cannot be loaded (line 2").await;
    shows(&browser, "outcome", "The codec cannot be loaded").await;
    assert_eq!(
        ask(&browser, "return document.querySelector('.cm-lineNumbers .cm-failed-number').textContent;").await,
        "2"
    );
    assert_eq!(ask(&browser, "return document.getElementById('rows').textContent.includes('level');").await, false);
    paste(&browser, "text", METER).await;
    shows(&browser, "rows", "2 messages, 1 failed").await;
}

// Conformance: playground
#[tokio::test]
async fn what_is_typed_runs_and_the_link_carries_it() {
    let Some((playground, browser, _dir)) = open("link", DESK).await else { return };
    paste(&browser, "text", "function Decoder(bytes, port) { return { n: bytes[1], port: port }; }").await;
    paste(&browser, "payloads", r#"{"uplink_message": {"f_port": 3, "frm_payload": "AQI="}}"#).await;
    shows(&browser, "outcome", "1 of 2 bytes is never read").await;
    shows(&browser, "loaded", "The Things Network 2").await;
    browser.click("#share").await;
    shows(&browser, "said", "link").await;
    let link = browser.client.current_url().await.unwrap();
    assert!(link.fragment().is_some_and(|fragment| fragment.len() < 400), "{link}");
    browser.client.goto("about:blank").await.unwrap();
    browser.client.goto(link.as_str()).await.unwrap();
    shows(&browser, "outcome", "port").await;
    assert!(browser.value("#payloads").await.contains("frm_payload"));
    assert!(link.as_str().starts_with(&playground.url));
    let (start, _) = link.as_str().split_at(link.as_str().len() - 20);
    browser.client.goto("about:blank").await.unwrap();
    browser.client.goto(start).await.unwrap();
    shows(&browser, "said", "This link cannot be read").await;
    shows(&browser, "verdict", "Decoded").await;
}

// Conformance: playground
#[tokio::test]
async fn bytes_and_fields_show_each_other() {
    let Some((_playground, browser, _dir)) = open("map", DESK).await else { return };
    shows(&browser, "outcome", "1 of 3 bytes is never read").await;
    let related = "return [...document.querySelectorAll('.related')].map((one) => one.textContent);";
    ask(&browser, "document.querySelectorAll('.bytes button')[1].focus();").await;
    assert_eq!(ask(&browser, related).await, json!(["02", "level11"]));
    browser.press(&Key::Left.to_string()).await;
    assert_eq!(ask(&browser, related).await, json!(["01", "kind\"a\"0"]));
    ask(&browser, "document.querySelectorAll('.fields tbody tr')[1].focus();").await;
    assert_eq!(ask(&browser, related).await, json!(["02", "level11"]));
    assert_eq!(ask(&browser, "return document.querySelector('.bytes .unread').textContent;").await, "03");
}

// Conformance: playground
#[tokio::test]
async fn the_gutter_has_the_fuel_of_each_line() {
    let Some((_playground, browser, _dir)) = open("fuel", DESK).await else { return };
    shows(&browser, "cost", "Bars show the fuel of lines").await;
    let costs = "const numbers = (text) => text.match(/\\d[\\d,]*/g).map((number) => Number(number.replaceAll(',', ''))); \
                 const lines = [...document.querySelectorAll('#costs li')].map((item) => numbers(item.textContent)); \
                 const [all, outside] = numbers(document.getElementById('cost').textContent); \
                 const [fuel] = numbers(document.querySelector('.meters output').textContent); \
                 return [lines.map(([line]) => line), lines.reduce((sum, [, fuel]) => sum + fuel, 0) - all, all + outside - fuel];";
    assert_eq!(ask(&browser, costs).await, json!([[2, 3], 0, 0]));
    let gutter = "const said = [...document.querySelectorAll('#costs li')].map((item) => item.textContent); \
                  const shown = [...document.querySelectorAll('.cm-cost')].map((cost) => cost.title); \
                  return shown.length === 2 && shown.every((text) => said.includes(text));";
    returns(&browser, gutter, json!(true)).await;
    let aligned = "const tops = (selector) => [...document.querySelectorAll(selector)].map((one) => one.getBoundingClientRect()).filter(({ height }) => height > 0).map(({ top }) => Math.round(top)); \
                   return JSON.stringify(tops('.cm-line')) === JSON.stringify(tops('.cm-lineNumbers .cm-gutterElement'));";
    returns(&browser, aligned, json!(true)).await;
    browser.click("#costs summary").await;
    browser.click("#costs li:nth-child(2) button").await;
    shows(&browser, "cost", "Line 3: ").await;
    assert_eq!(ask(&browser, CURSOR_LINE).await, "3");
    browser.press_with(Key::Control, char::from(Key::Home)).await;
    shows(&browser, "cost", "Bars show the fuel of lines").await;
    browser.click("tr[data-place='1'] button").await;
    shows(&browser, "outcome", "The decoder failed").await;
    shows(&browser, "cost", "Bars show the fuel of lines").await;
    paste(&browser, "text", "function decodeUplink(input) { return ( }").await;
    shows(&browser, "loaded", "cannot be loaded").await;
    returns(&browser, "return document.querySelectorAll('#costs li, .cm-cost').length;", json!(0)).await;
}

// Conformance: playground
#[tokio::test]
async fn what_codecs_say_is_text() {
    let Some((_playground, browser, _dir)) = open("markup", DESK).await else { return };
    paste(&browser, "text", MARKUP).await;
    paste(&browser, "payloads", "00\n01").await;
    shows(&browser, "outcome", "\\u202e<script>").await;
    shows(&browser, "outcome", "<b id=bold>").await;
    browser.click("tr[data-place='1'] button").await;
    shows(&browser, "outcome", "<img src=x>").await;
    assert_eq!(
        ask(&browser, "return document.querySelectorAll('main img:not(.cm-widgetBuffer), main script, #bold').length;")
            .await,
        0
    );
}

// Conformance: playground
#[tokio::test]
async fn a_loop_ends_and_a_thousand_messages_stay_usable() {
    let Some((_playground, browser, _dir)) = open("many", DESK).await else { return };
    paste(&browser, "text", "function Decoder(bytes) {\n  while (bytes[0] > 9);\n  return { n: bytes[0] };\n}").await;
    let many: String = (0..1000).map(|index| format!("0{}\n", index % 10)).collect();
    paste(&browser, "payloads", &many).await;
    shows(&browser, "rows", "messages, 0 failed").await;
    browser.click(".pages button:last-child").await;
    shows(&browser, "rows", "Page 2 of 10").await;
    paste(&browser, "payloads", &"0a\n".repeat(1000)).await;
    shows(&browser, "outcome", "The decoder used up its fuel (line 2").await;
    // The rest of the thousand loops does not keep the next message waiting.
    paste(&browser, "payloads", "07").await;
    shows(&browser, "verdict", "Decoded").await;
}

// Conformance: playground
#[tokio::test]
async fn five_thousand_fields_are_shown_and_too_many_names_are_a_failure() {
    let Some((_playground, browser, _dir)) = open("fields", DESK).await else { return };
    let filled = |fill| {
        format!(
            "function Decoder(bytes) {{ var all = {{ list: [] }}; for (var n = 0; n < 5000; n++) {fill}; return all; }}"
        )
    };
    paste(&browser, "payloads", "01").await;
    paste(&browser, "text", &filled("all.list.push((n + bytes[0]) % 10)")).await;
    let count = "const json = document.querySelector('#outcome details pre')?.textContent ?? '{}'; return JSON.parse(json).list?.length ?? 0;";
    returns(&browser, count, json!(5000)).await;
    assert_eq!(ask(&browser, "return document.querySelectorAll('#outcome tbody tr').length;").await, 0);
    browser.look("playground-fields").await;
    paste(&browser, "text", &filled("all['field_' + n] = n")).await;
    shows(&browser, "outcome", "The decoder returned more than 1024 keys").await;
}

// Conformance: playground
#[tokio::test]
async fn a_large_codec_is_shown_and_its_line_is_marked() {
    let Some((_playground, browser, _dir)) = open("large", DESK).await else { return };
    let filler = "var filler = 'of a line of source text';\n".repeat(5000);
    paste(&browser, "text", &format!("{filler}function Decoder(bytes) {{\n  return {{ n: nothing }};\n}}\n")).await;
    shows(&browser, "outcome", "(line 5002, column").await;
    browser.click("#outcome .problem button").await;
    let marked = "const mark = document.querySelector('.cm-failed')?.getBoundingClientRect(); \
                  const editor = document.getElementById('editor').getBoundingClientRect(); \
                  return mark !== undefined && mark.top > editor.top && mark.bottom < editor.bottom;";
    returns(&browser, marked, json!(true)).await;
}

// Conformance: playground
#[tokio::test]
async fn everything_is_reached_by_keyboard() {
    let Some((_playground, browser, _dir)) = open("keyboard", DESK).await else { return };
    shows(&browser, "cost", "Bars show the fuel of lines").await;
    for selector in ["#share", "#text-code", "#costs summary", "#port", "#payloads", "tr[data-place='1'] button"] {
        browser.tab_to(selector).await;
    }
    browser.press(&Key::Enter.to_string()).await;
    shows(&browser, "verdict", "Failed").await;
    for selector in [".bytes button", "#outcome .problem button", "summary"] {
        browser.tab_to(selector).await;
    }
}

async fn look_at(name: &'static str, look: Look) {
    let Some((_playground, browser, _dir)) = open(name, look).await else { return };
    shows(&browser, "outcome", "never read").await;
    browser.look("playground").await;
    browser.click("tr[data-place='1'] button").await;
    shows(&browser, "outcome", "The decoder failed").await;
    browser.look("playground-failed").await;
    paste(&browser, "payloads", &format!("{}\n01", "0102".repeat(30))).await;
    shows(&browser, "rows", "2 messages, 1 failed").await;
    let lines = "const cell = document.querySelector(\"tr[data-place='0'] td:nth-child(3)\"); \
                 return Math.round(cell.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight));";
    let lines = ask(&browser, lines).await.as_u64().unwrap();
    assert!(look.width > 500 || (1..6).contains(&lines), "a payload of 120 digits is on {lines} lines");
}

// Conformance: playground
#[tokio::test]
async fn it_is_good_to_look_at_on_a_desk_and_on_a_phone() {
    look_at("playground-desk", Look { width: 1280, ..DESK }).await;
    look_at("playground-phone-dark", Look { width: 375, dark: true, ..DESK }).await;
}

// Conformance: playground
#[tokio::test]
async fn it_is_good_to_look_at_in_the_dark_and_on_a_light_phone() {
    look_at("playground-desk-dark", Look { width: 1280, dark: true, ..DESK }).await;
    look_at("playground-phone", Look { width: 375, ..DESK }).await;
}
