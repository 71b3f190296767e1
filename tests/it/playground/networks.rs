//! Networks in the page: the workbench that is compiled for browsers judges and ports as the program does.

use std::{convert::Infallible, path::Path, process::Command, slice, sync::Arc};

use fantoccini::{key::Key, wd::TimeoutConfiguration};
use runtime::{Engine, Function};
use serde_json::{Map, Value, json};
use workbench::{Codec, Example, Expected, Input, Ported, Target, Tolerance, Verdict};

use super::{
    has_node,
    page::{PATIENCE, ask, open, paste, returns, settle, shows},
    vectors,
};
use crate::{
    browser::{DESK, driver::Look},
    harness::run,
};

/// Strict code refuses it, and ChirpStack from 4.17 runs strict code.
const UNDECLARED: &str =
    "function decodeUplink(input) {\n  total = input.bytes[0];\n  return { data: { total: total } };\n}\n";
const STRICT: &str = "chirpstack-4.17";
/// As many uplinks as the page sends.
const UPLINKS_MAX: usize = 8;
/// The networks to which each codec is ported: other ones for the next.
const PORTED: usize = 2;

/// The codec as the page submits it.
fn submitted(codec: &Codec) -> Value {
    let uplinks = codec.examples.iter().enumerate().filter_map(|(index, example)| match &example.input {
        Input::Bytes(payload) => {
            Some(json!({"line": index + 1, "port": example.port, "payload": payload, "timeMs": example.time_ms}))
        }
        Input::Json(_) => None,
    });
    let dialect = codec.dialect.map(runtime::Dialect::name);
    json!({"text": codec.script, "dialect": dialect, "uplinks": uplinks.collect::<Vec<_>>()})
}

/// The example that a payload of the page is: nothing is expected of it.
fn payload(line: usize, port: u8, input: Input, time_ms: i64) -> Example {
    Example {
        description: format!("payload of line {line}"),
        function: Function::Decoder,
        port,
        input,
        extra: Map::new(),
        time_ms,
        expected: Expected::Unknown,
        wrapped: false,
        tolerance: Tolerance::None,
        excluded: None,
        place: None,
    }
}

/// A codec of the page, with its first payloads.
fn typed(codec: &Codec) -> Codec {
    let payloads = codec.examples.iter().filter(|example| example.function == Function::Decoder).take(UPLINKS_MAX);
    let examples = payloads
        .enumerate()
        .map(|(index, example)| payload(index + 1, example.port, example.input.clone(), example.time_ms))
        .collect();
    Codec { dialect: codec.dialect, examples, ..Codec::new(codec.id.clone(), codec.script.clone(), None) }
}

/// A request to the workbench about codecs: for the verdicts on each, and its ports to the targets.
fn questions(engine: &Engine, codecs: &[(Codec, Vec<Target>)]) -> Value {
    let all = codecs.iter().map(|(codec, targets)| {
        let targets: Vec<_> = targets.iter().map(|target| target.name()).collect();
        json!({"codec": submitted(codec), "targets": targets})
    });
    json!({"limits": **engine.limits(), "codecs": all.collect::<Vec<_>>()})
}

/// The answers of the page's workbench about codecs, in Node.js: a value for each, with its ports to the targets.
fn in_node(engine: &Engine, codecs: &[(Codec, Vec<Target>)]) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new("node");
    node.arg(root.join("tests/it/playground/networks.mjs")).arg(root);
    let output = run(&mut node, &questions(engine, codecs).to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(super) fn verdicts(engine: &Arc<Engine>, codec: &Codec) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let Ok(()) = workbench::lint(engine, slice::from_ref(codec), &Target::ALL, 1, |report| {
        verdicts.clone_from(&report.verdicts);
        Ok::<(), Infallible>(())
    });
    verdicts
}

fn ported(engine: &Arc<Engine>, codec: &Codec, target: Target) -> Value {
    let ported = workbench::port(engine, slice::from_ref(codec), target);
    let is_sound = ported.is_sound();
    let Ported { text, changes, obstacles, examples, compared, agreed, differences } = ported;
    json!({
        "text": text, "isSound": is_sound, "changes": changes, "obstacles": obstacles, "differences": differences,
        "examples": examples, "compared": compared, "agreed": agreed,
    })
}

// Conformance: playground
#[test]
fn the_page_judges_and_ports_codecs_as_the_program_does() {
    if !has_node() {
        return;
    }
    let (engine, codecs) = vectors::codecs();
    let targets = |index: usize| (0..PORTED).map(|nth| Target::ALL[(index + 3 * nth) % Target::ALL.len()]).collect();
    let codecs: Vec<(Codec, Vec<Target>)> =
        codecs.iter().enumerate().map(|(index, codec)| (typed(codec), targets(index))).collect();
    let page = in_node(&engine, &codecs);
    assert_eq!(page.len(), codecs.len());
    for ((codec, targets), page) in codecs.iter().zip(&page) {
        assert_eq!(json!(verdicts(&engine, codec)), page["verdicts"], "{}", codec.id);
        for (target, page) in targets.iter().zip(page["ported"].as_array().unwrap()) {
            let mut page = page.clone();
            let diff = page.as_object_mut().unwrap().remove("diff").unwrap();
            assert_eq!(ported(&engine, codec, *target), page, "{} for {}", codec.id, target.name());
            let has_changed = !["", codec.script.as_str()].contains(&page["text"].as_str().unwrap());
            assert_eq!(diff != "", has_changed, "{} for {}", codec.id, target.name());
        }
    }
    let compared = |page: &&Value| page["verdicts"].as_array().unwrap().iter().any(|one| one["examples"] != 0);
    assert!(page.iter().filter(compared).count() > 20, "few codecs ran by the rules of a network");
}

// Conformance: playground
#[test]
fn a_source_of_any_kind_gets_a_verdict() {
    if !has_node() {
        return;
    }
    let (engine, _) = vectors::codecs();
    let minified =
        format!("function decodeUplink(input) {{ total = 1; return {{ data: {{ x: '{}' }} }}; }}", "x".repeat(300_000));
    let texts = [
        "",
        "function decodeUplink(",
        "function decodeUplink() { while (true) {} }",
        &"[".repeat(100_000),
        &format!("function decodeUplink() {{ return {}1{}; }}", "(".repeat(3_000), ")".repeat(3_000)),
        &minified,
    ];
    let codecs = texts.map(|text| {
        let examples = vec![payload(1, 1, Input::Bytes(vec![7]), 0)];
        let codec = Codec { examples, ..Codec::new("codec".to_owned(), text.to_owned(), None) };
        (codec, vec![Target::ChirpStackModule])
    });
    let page = in_node(&engine, &codecs);
    for (text, page) in texts.iter().zip(&page) {
        assert_eq!(page["verdicts"].as_array().unwrap().len(), Target::ALL.len(), "{}", &text[..text.len().min(40)]);
    }
    let diff = page.last().unwrap()["ported"][0]["diff"].as_str().unwrap();
    assert!(
        diff.starts_with("--- as typed\n+++ ported\n") && diff.contains("too long"),
        "{}",
        &diff[..diff.len().min(100)]
    );
}

// Conformance: playground
#[test]
fn a_workbench_that_ends_is_started_again() {
    if !has_node() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new("node");
    node.arg(root.join("tests/it/playground/workbench.mjs")).arg(root);
    let output = run(&mut node, &json!(runtime::Limits::default()).to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Judges codecs in the page, with what it has loaded from its server.
const JUDGED: &str = "const [{ limits, codecs }, done] = arguments; \
     const bytes = (name) => fetch(name).then((got) => got.arrayBuffer()); \
     const files = [import(new URL('workbench/module.js', location)), bytes('workbench.wasm'), bytes('guest.wasm')]; \
     Promise.all(files).then(async ([{ WorkbenchModule }, module, guest]) => { \
         const workbench = new WorkbenchModule(await WebAssembly.compile(module), new Uint8Array(guest)); \
         return codecs.map(({ codec }) => workbench.answer({ lint: codec }, limits)); \
     }).then(done, (error) => done(String(error)));";

// Conformance: playground
#[tokio::test]
async fn the_page_judges_in_chromium_as_the_program_does() {
    let Some((_playground, browser, _dir)) = open("playground-networks-vectors", DESK).await else { return };
    let (engine, codecs) = vectors::codecs();
    let codecs: Vec<(Codec, Vec<Target>)> = codecs.iter().map(|codec| (typed(codec), Vec::new())).collect();
    let patience = TimeoutConfiguration::new(Some(PATIENCE), None, None);
    browser.client.update_timeouts(patience).await.unwrap();
    let page = browser.client.execute_async(JUDGED, vec![questions(&engine, &codecs)]).await.unwrap();
    let page = page.as_array().unwrap_or_else(|| panic!("{page}"));
    assert_eq!(page.len(), codecs.len());
    for ((codec, _), page) in codecs.iter().zip(page) {
        assert_eq!(json!(verdicts(&engine, codec)), *page, "{}", codec.id);
    }
}

/// The number of workers of the workbench that the page has started.
const STARTED: &str = "return performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/workbench/worker.js')).length;";

async fn look_at_networks(name: &'static str, look: Look) {
    let Some((_playground, browser, _dir)) = open(name, look).await else { return };
    paste(&browser, "text", UNDECLARED).await;
    shows(&browser, "outcome", "total").await;
    settle(&browser).await;
    assert_eq!(ask(&browser, STARTED).await, 0);
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    browser.click(&format!("[id='tab-{STRICT}']")).await;
    shows(&browser, "network", "Does not run on ChirpStack from 4.17").await;
    shows(&browser, "editor", "nothing declares").await;
    browser.click("#port-codec").await;
    shows(&browser, "network", "declared total").await;
    browser.look("playground-networks").await;
    browser.click(".ported button").await;
    shows(&browser, "network", "Runs on ChirpStack from 4.17").await;
    assert_eq!(browser.value("#text").await, format!("var total;\n{UNDECLARED}"));
}

// Conformance: playground
#[tokio::test]
async fn networks_are_tabs_with_reasons_and_the_codec_is_ported() {
    look_at_networks("playground-networks-desk", Look { width: 1280, ..DESK }).await;
    look_at_networks("playground-networks-phone", Look { width: 375, dark: true, ..DESK }).await;
}

// Conformance: playground
#[tokio::test]
async fn a_ported_text_does_not_replace_what_was_typed_since() {
    let Some((_playground, browser, _dir)) = open("playground-networks-typed", DESK).await else { return };
    paste(&browser, "text", UNDECLARED).await;
    shows(&browser, "outcome", "total").await;
    settle(&browser).await;
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    browser.click(&format!("[id='tab-{STRICT}']")).await;
    shows(&browser, "network", "Does not run on ChirpStack from 4.17").await;
    browser.click("#port-codec").await;
    shows(&browser, "network", "Use this text").await;
    paste(&browser, "text", &format!("{UNDECLARED}// typed\n")).await;
    assert_eq!(ask(&browser, "return document.querySelectorAll('.ported button').length;").await, 0);
}

// Conformance: playground
#[tokio::test]
async fn networks_are_chosen_by_keyboard() {
    let Some((_playground, browser, _dir)) = open("playground-networks-keys", DESK).await else { return };
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    browser.tab_to("[role=tab]").await;
    browser.press(&Key::Right.to_string()).await;
    shows(&browser, "network", "ChirpStack from 4.17").await;
    let chosen = "return [document.activeElement.getAttribute('aria-selected'), document.querySelectorAll('[aria-selected=true][role=tab]').length];";
    assert_eq!(ask(&browser, chosen).await, json!(["true", 1]));
}

/// Waits until the address has the network of a tab.
const LINKED: &str = "const [network, done] = arguments; \
     const look = () => import(new URL('link.js', location)).then(({ fromFragment }) => fromFragment(location.hash)) \
       .then((state) => (state?.network === network ? done(true) : setTimeout(look, 20))); look();";

// Conformance: playground
#[tokio::test]
async fn a_link_leads_to_the_network_that_was_chosen() {
    let Some((_playground, browser, _dir)) = open("playground-networks-link", DESK).await else { return };
    paste(&browser, "text", UNDECLARED).await;
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    browser.click(&format!("[id='tab-{STRICT}']")).await;
    browser.client.execute_async(LINKED, vec![json!(STRICT)]).await.unwrap();
    browser.client.refresh().await.unwrap();
    shows(&browser, "network", "Does not run on ChirpStack from 4.17").await;
    assert_eq!(browser.value("#text").await, UNDECLARED);
}

/// Types another source, closes the part, and says how often the page asks the workbench before it has kept the link,
/// which it does no earlier than it would ask.
const CLOSED: &str = "const [done] = arguments; const before = location.hash; let asked = 0; \
     const own = Worker.prototype.postMessage; \
     Worker.prototype.postMessage = function (what) { if (what.question !== undefined) asked += 1; return own.call(this, what); }; \
     const clipboardData = new DataTransfer(); clipboardData.setData('text/plain', '\\n'); \
     document.getElementById('text-code').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })); \
     document.querySelector('#networks-details summary').click(); \
     const look = () => (location.hash === before ? setTimeout(look, 20) : done(asked)); look();";

// Conformance: playground
#[tokio::test]
async fn nothing_is_judged_once_networks_are_closed() {
    let Some((_playground, browser, _dir)) = open("playground-networks-closed", DESK).await else { return };
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    // Otherwise it may be the link to the older source that the script waits for.
    returns(&browser, "return location.hash.length > 1;", json!(true)).await;
    assert_eq!(browser.client.execute_async(CLOSED, vec![]).await.unwrap(), 0);
}

// Conformance: playground
#[tokio::test]
async fn a_workbench_that_ends_leaves_no_older_verdict() {
    let Some((_playground, browser, _dir)) = open("playground-networks-away", DESK).await else { return };
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    let away = "window.post = Worker.prototype.postMessage; \
                Worker.prototype.postMessage = function (what) { \
                    return what.question === undefined ? window.post.call(this, what) : this.onerror(); };";
    ask(&browser, away).await;
    paste(&browser, "text", UNDECLARED).await;
    shows(&browser, "network", "There is no verdict: its scripts cannot be loaded").await;
    assert_eq!(ask(&browser, "return document.querySelectorAll('.tab-list .note').length;").await, 0);
    ask(&browser, "Worker.prototype.postMessage = window.post;").await;
    browser.click(&format!("[id='tab-{STRICT}']")).await;
    shows(&browser, "network", "Does not run on ChirpStack from 4.17").await;
}
