//! Folders in the page: it reads their codecs, runs and updates their examples as the program does, and saves them.

mod mended;
mod table;

use std::{collections::BTreeSet, convert::Infallible, fs, path::Path, process::Command, slice, sync::Arc};

use runtime::Engine;
use serde_json::{Value, json};
use workbench::{Codec, CodecReport, Detail, Rules};

use super::{
    has_node, networks,
    page::{METER, ask, open, paste, returns, settle, shows},
    vectors,
};
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
    },
    harness::{airlock, run},
};

const HALF: &str = "function decodeUplink(input) {\n  return { data: { level: input.bytes[0] / 2 } };\n}\n";
const WRONG: &str = "# of the meter\nexamples:\n  - description: half\n    bytes: '04'\n    output: { data: { level: 2 } }\n  \
                     - description: wrong\n    bytes: '06' # six\n    output: { data: { level: 6 } }\n";
/// Codecs in every layout, and files in which something is wrong.
const TREE: [(&str, &str); 19] = [
    ("own/meter.js", HALF),
    ("own/meter.test.yaml", WRONG),
    ("repository/vendor/acme/meter.js", HALF),
    (
        "repository/vendor/acme/meter-codec.yaml",
        "uplinkDecoder:\n  fileName: meter.js\n  examples:\n    - description: wrong\n      input:\n        fPort: 1\n        \
         bytes: [6]\n      output:\n        data: { level: 6 }\n",
    ),
    ("profiles/meter.js", HALF),
    (
        "profiles/test_decode_meter.json",
        "[\n  // wrong\n  {\"name\": \"wrong\", \"input\": {\"fPort\": 1, \"bytes\": [6]}, \"expected\": {\"data\": {\"level\": 6}}}\n]\n",
    ),
    (
        "package/index.js",
        "var half = require('./half');\nfunction decodeUplink(input) { return { data: half(input) }; }\n",
    ),
    ("package/half.js", "module.exports = function (input) { return { level: input.bytes[0] / 2 }; };\n"),
    (
        "package/examples.json",
        "[{\"type\": \"uplink\", \"description\": \"wrong\", \"input\": {\"bytes\": \"06\"}, \"output\": {\"data\": {\"level\": 6}}}]",
    ),
    ("milesight/th1-decoder.js", "function decodeUplink(input) { return { data: { level: 1, other: 2 } }; }\n"),
    ("milesight/th1-codec.json", "{\"bytes\": \"0367\", \"object\": [{\"id\": \"level\", \"name\": \"Level\"}]}"),
    (
        "lines.jsonl",
        "{\"id\": \"line\", \"script\": \"function Decoder(b) { throw 'no'; }\", \"examples\": [{\"bytes_hex\": \"01\", \"expected\": {}}]}\n\
         {\"id\": \"outside\", \"script_file\": \"../outside.js\"}\n",
    ),
    ("alone/alone.js", HALF),
    ("broken/meter.js", HALF),
    ("broken/meter.test.yaml", "examples: {"),
    ("orphan/test_decode_none.json", "[]"),
    ("unloaded/meter.js", "function decodeUplink(input) {\n  retur 1\n}\n"),
    ("unloaded/meter.test.yaml", "examples:\n  - bytes: '01'\n"),
    ("node_modules/other.js", HALF),
];
const LAYOUTS: [&str; 6] = [
    "Airlock",
    "ChirpStack's device profiles",
    "JSON lines",
    "Milesight",
    "TS013 package",
    "The Things Network's device repository",
];

fn write_tree(dir: &Path) {
    for (path, text) in TREE {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The page's report on the codecs below a directory, in Node.js.
fn in_node(engine: &Engine, dir: &Path, what: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new("node");
    node.arg(root.join("tests/it/playground/folder.mjs")).arg(root).arg(dir).arg(what);
    let output = run(&mut node, &json!(**engine.limits()).to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn report(engine: &Arc<Engine>, codec: &Codec) -> (Value, String) {
    let mut told = (Value::Null, String::new());
    let Ok(_) = workbench::run(engine, slice::from_ref(codec), Rules::default(), 1, |report| {
        told = (examples(report), report.text(Detail::Normal));
        Ok::<(), Infallible>(())
    });
    told
}

fn examples(report: &CodecReport) -> Value {
    report.examples.iter().map(|example| json!(example)).map(|example| only_compared(&example)).collect()
}

fn only_compared(example: &Value) -> Value {
    json!({"call": example["call"], "outcome": example["outcome"], "fuel": example["fuel"], "line": example["line"]})
}

/// Compares the page with the program. Returns the layouts of the codecs, and the number of examples that fail.
fn check_same(engine: &Arc<Engine>, dir: &Path) -> (BTreeSet<String>, usize) {
    let page = in_node(engine, dir, "tested");
    let found = workbench::find(&[dir.to_owned()], None, engine);
    let listed = page["codecs"].as_array().unwrap();
    assert_eq!(found.codecs.len(), listed.len(), "{page}");
    let mut failed = 0;
    for (codec, page) in found.codecs.iter().zip(listed) {
        assert_eq!((&json!(codec.id), &json!(codec.script)), (&page["origin"]["id"], &page["opened"]["text"]));
        assert_eq!(codec.examples.len(), page["examples"], "{page}");
        assert_eq!(json!(networks::verdicts(engine, codec)), page["linted"], "{}", codec.id);
        let (examples, text) = report(engine, codec);
        let of_page = page["tested"]["report"]["examples"].as_array().unwrap();
        assert_eq!(examples, of_page.iter().map(only_compared).collect::<Value>(), "{}", codec.id);
        let lines = of_page.iter().filter(|example| example["outcome"] == "failed").flat_map(|example| {
            failed += 1;
            example["lines"].as_array().unwrap()
        });
        let is_loaded = page["tested"]["report"]["failure"].is_null();
        for line in lines.filter(|_| is_loaded) {
            assert!(text.contains(line.as_str().unwrap()), "{line} is not in {text}");
        }
    }
    let place = |(file, line): (&str, u64)| json!([Path::new(file).strip_prefix(dir).unwrap_or(Path::new(file)), line]);
    let problems: Vec<_> = found.problems.iter().map(|problem| problem.place().map(place)).collect();
    let of_page = page["problems"].as_array().unwrap().iter().map(|problem| json!([problem["file"], problem["line"]]));
    assert_eq!(json!(problems), json!(of_page.collect::<Vec<_>>()));
    let layouts = listed.iter().filter_map(|codec| codec["layout"].as_str().map(str::to_owned));
    (layouts.collect(), failed)
}

// Conformance: playground
#[test]
fn the_page_reads_and_runs_examples_in_every_layout_as_the_program_does() {
    if !has_node() {
        return;
    }
    let (engine, _) = vectors::codecs();
    let dir = tempfile::tempdir().unwrap();
    write_tree(dir.path());
    let (layouts, failed) = check_same(&engine, dir.path());
    assert_eq!(layouts.iter().map(String::as_str).collect::<Vec<_>>(), LAYOUTS);
    assert_eq!(failed, 7, "one of each layout, and one of a codec that cannot be loaded");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("workbench/tests/fixtures");
    assert!(check_same(&engine, &fixtures).0.len() >= 5);
    let twice = tempfile::tempdir().unwrap();
    fs::write(twice.path().join("meter.js"), HALF).unwrap();
    let examples = [4, 6].map(|level| json!([{"bytes_hex": "08", "expected": {"data": {"level": level}}}]));
    let lines = examples.map(|examples| format!("{}\n", json!({"script_file": "meter.js", "examples": examples})));
    fs::write(twice.path().join("codecs.jsonl"), lines.concat()).unwrap();
    assert_eq!(check_same(&engine, twice.path()).1, 1, "the second of two codecs with the same id and files");
}

// Conformance: playground
#[test]
fn the_page_writes_results_into_files_as_the_program_does() {
    if !has_node() {
        return;
    }
    let (engine, _) = vectors::codecs();
    let (own, page) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    [&own, &page].into_iter().for_each(|dir| write_tree(dir.path()));
    let told = in_node(&engine, page.path(), "updated");
    run(airlock(own.path()).args(["functions", "test", ".", "--update"]), "");
    let mut changed = 0;
    for (path, before) in TREE {
        let read = |dir: &Path| fs::read_to_string(dir.join(path)).unwrap();
        assert_eq!(read(own.path()), read(page.path()), "{path}");
        changed += usize::from(read(page.path()) != before);
    }
    assert_eq!(changed, 4, "the files that expect a value which the codec can return");
    assert_eq!(told["ci"]["path"], ".github/workflows/codecs.yml");
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("workbench/src/layout/template/codecs.yml");
    assert_eq!(told["ci"]["text"], fs::read_to_string(template).unwrap());
}

// Conformance: playground
#[test]
fn payloads_become_examples_that_pass_in_the_layout_of_their_file() {
    if !has_node() {
        return;
    }
    let (engine, _) = vectors::codecs();
    let dir = tempfile::tempdir().unwrap();
    write_tree(dir.path());
    let told = in_node(&engine, dir.path(), "added");
    let by_hand = "examples of this layout are written by hand, in their file";
    assert_eq!(
        told["added"],
        json!({
            "alone": "no file has examples of its decoder", "line": by_hand, "milesight/th1": by_hand, "own/meter": [1, 0],
            "package": [1, 0], "profiles/meter": [1, 0], "repository/acme/meter": [1, 0], "unloaded/meter": [0, 1],
        })
    );
    let output = run(airlock(dir.path()).args(["functions", "test", ".", "--format", "json"]), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let totals: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&totals["passed"], &totals["failed"]), (&json!(5), &json!(7)), "{text}");
    let profile = fs::read_to_string(dir.path().join("profiles/test_decode_meter.json")).unwrap();
    assert!(profile.starts_with("[\n  // wrong\n  {\"name\": \"wrong\"") && profile.ends_with("}}}\n]\n"), "{profile}");
}

// Conformance: playground
#[test]
fn files_of_a_folder_are_taken_and_changed_within_bounds() {
    if !has_node() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("codecs.zip");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/playground/folder_files.mjs");
    let output = Command::new("node").arg("--test").arg(tests).env("ARCHIVE", &archive).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let script = "import json, sys, zipfile\narchive = zipfile.ZipFile(sys.argv[1])\nassert archive.testzip() is None\n\
                  print(json.dumps([[one, len(archive.read(one).decode())] for one in archive.namelist()]))";
    let Ok(output) = Command::new("python3").args(["-c", script]).arg(&archive).output() else {
        return testing::skip("python3 is missing", "install python3 to read an archive with another program");
    };
    let read: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(read, json!([["a/m\u{e9}ter.js", 4], ["empty.yml", 0], ["b.json", 100_000]]));
}

/// Lets the picker of folders give one with files, in the browser's own file system: a real one is not within reach of
/// tests.
const GIVE: &str = "const [files, done] = arguments; (async () => { \
     const top = await (await navigator.storage.getDirectory()).getDirectoryHandle('codecs', { create: true }); \
     for (const [path, text] of Object.entries(files)) { \
       const names = path.split('/'), name = names.pop(); let directory = top; \
       for (const below of names) directory = await directory.getDirectoryHandle(below, { create: true }); \
       const stream = await (await directory.getFileHandle(name, { create: true })).createWritable(); \
       await stream.write(text); await stream.close(); } \
     window.showDirectoryPicker = async () => top; })().then(() => done('given'), (error) => done(String(error)));";
const READ: &str = "const [path, done] = arguments; (async () => { \
     let directory = await (await navigator.storage.getDirectory()).getDirectoryHandle('codecs'); \
     const names = path.split('/'), name = names.pop(); \
     for (const below of names) directory = await directory.getDirectoryHandle(below); \
     return (await (await directory.getFileHandle(name)).getFile()).text(); })().then(done, (error) => done(String(error)));";

async fn give(browser: &Browser, files: &[(&str, &str)]) {
    let files: serde_json::Map<String, Value> =
        files.iter().map(|(path, text)| ((*path).to_owned(), json!(text))).collect();
    assert_eq!(browser.client.execute_async(GIVE, vec![json!(files)]).await.unwrap(), "given");
}

async fn read(browser: &Browser, path: &str) -> String {
    let text = browser.client.execute_async(READ, vec![json!(path)]).await.unwrap();
    text.as_str().unwrap().to_owned()
}

/// Chooses from a list, as somebody does.
async fn choose(browser: &Browser, id: &str, text: &str) {
    let script = "const list = document.getElementById(arguments[0]); \
                  list.value = [...list.options].find((option) => option.text.includes(arguments[1])).value; \
                  list.dispatchEvent(new Event('change', { bubbles: true }));";
    browser.client.execute(script, vec![json!(id), json!(text)]).await.unwrap();
}

async fn edit_in(name: &'static str, look: Look) {
    let Some((_playground, browser, _dir)) = open(name, look).await else { return };
    give(&browser, &TREE).await;
    browser.click("#folder-details summary").await;
    browser.click("#folder-open").await;
    shows(&browser, "folder-said", "Found 8 codecs in codecs. Choose one to open it in the editor. 3 problems").await;
    choose(&browser, "folder-codec", "own/meter").await;
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    shows(&browser, "folder", "expected 6").await;
    assert_eq!(browser.value("#text").await, HALF);
    assert_eq!(browser.value("#payloads").await, "0: 04\n0: 06");
    browser.look("playground-folder").await;
    paste(&browser, "text", &HALF.replace("/ 2", "* 1")).await;
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    shows(&browser, "folder", "expected 2").await;
    paste(&browser, "text", HALF).await;
    shows(&browser, "folder-save", "Nothing to save").await;
    browser.click("#folder-update").await;
    shows(&browser, "folder-verdict", "2 examples: 2 passed.").await;
    paste(&browser, "payloads", "0: 04\n9: 08").await;
    settle(&browser).await;
    browser.click("#folder-add").await;
    shows(&browser, "folder-said", "Added 1 example to own/meter.test.yaml.").await;
    shows(&browser, "folder-verdict", "3 examples: 3 passed.").await;
    browser.click("#folder-ci").await;
    shows(&browser, "folder-save", "Save 2 files").await;
    browser.click("#folder-save").await;
    shows(&browser, "folder-said", "Saved own/meter.test.yaml, .github/workflows/codecs.yml.").await;
    let saved = read(&browser, "own/meter.test.yaml").await;
    let (before, added) = saved.split_at(WRONG.len());
    assert_eq!(before, WRONG.replace("level: 6", "level: 3"));
    assert!(added.contains("08 on port 9"), "{added}");
    assert!(read(&browser, ".github/workflows/codecs.yml").await.contains("paths: ."));
    let none: Vec<String> = vec![];
    assert_eq!(browser.complaints().await, none);
}

// Conformance: playground
#[tokio::test]
async fn a_folder_is_opened_mended_and_saved_where_it_was() {
    edit_in("playground-folder-desk", Look { width: 1280, ..DESK }).await;
    edit_in("playground-folder-phone", Look { width: 375, dark: true, ..DESK }).await;
}

// Conformance: playground
#[tokio::test]
async fn examples_are_edited_in_their_file_and_other_programs_are_not_overwritten() {
    let Some((_playground, browser, _dir)) = open("playground-folder-edited", DESK).await else { return };
    give(&browser, &TREE).await;
    browser.click("#folder-details summary").await;
    browser.click("#folder-open").await;
    choose_profile(&browser).await;
    let mended = "[{\"input\": {\"bytes\": [6]}, \"expected\": {\"data\": {\"level\": 3}}}]";
    paste(&browser, "folder-text", "[{").await;
    shows(&browser, "folder-verdict", "The codec has no examples.").await;
    shows(&browser, "folder", "profiles/test_decode_meter.json, line 1: neither JSON").await;
    paste(&browser, "folder-text", mended).await;
    shows(&browser, "folder-verdict", "1 example: 1 passed.").await;
    give(&browser, &[("profiles/test_decode_meter.json", "[]")]).await;
    browser.click("#folder-save").await;
    shows(&browser, "folder-said", "profiles/test_decode_meter.json has changed on disk").await;
    assert_eq!(read(&browser, "profiles/test_decode_meter.json").await, "[]");
    // Another codec does not get into the file of this one.
    let another = "const [done] = arguments; import(new URL('link.js', location)) \
                   .then(({ toFragment }) => toFragment({ text: 'function Decoder() { return {}; }' })) \
                   .then((fragment) => { location.hash = fragment; done(null); });";
    browser.client.execute_async(another, vec![]).await.unwrap();
    shows(&browser, "folder-verdict", "Another codec is in the editor.").await;
    paste(&browser, "text", METER).await;
    shows(&browser, "loaded", "encoder (TS013)").await;
    shows(&browser, "folder-save", "Save 1 file").await;
    choose(&browser, "folder-codec", "package").await;
    shows(&browser, "folder-verdict", "1 example: 0 passed, 1 failed.").await;
    assert_eq!(ask(&browser, PART).await, true);
    let before = browser.value("#text").await;
    paste(&browser, "text", &before.replace("/ 2", "* 1")).await;
    shows(&browser, "folder-verdict", "1 example: 1 passed.").await;
    shows(&browser, "folder-save", "Save 1 file").await;
}

/// Returns true if the page says that the text is not saved.
const PART: &str = "return document.getElementById('folder-part').checkVisibility();";

async fn choose_profile(browser: &Browser) {
    shows(browser, "folder-said", "8 codecs").await;
    choose(browser, "folder-codec", "profiles/meter").await;
    shows(browser, "folder-verdict", "1 example: 0 passed, 1 failed.").await;
    let examples = "return document.getElementById('folder-text').value.includes('// wrong');";
    returns(browser, examples, json!(true)).await;
    assert_eq!(ask(browser, PART).await, false);
}

// Conformance: playground
#[tokio::test]
async fn files_are_taken_by_browsers_without_a_picker_and_saved_as_downloads() {
    let Some((_playground, browser, _dir)) = open("playground-folder-files", DESK).await else { return };
    let dir = tempfile::tempdir().unwrap();
    write_tree(dir.path());
    ask(&browser, "delete window.showOpenFilePicker; delete window.showDirectoryPicker;").await;
    browser.click("#folder-details summary").await;
    let input = browser.client.find(fantoccini::Locator::Css("#files-input")).await.unwrap();
    let paths = ["own/meter.js", "own/meter.test.yaml"].map(|path| dir.path().join(path).display().to_string());
    input.send_keys(&paths.join("\n")).await.unwrap();
    shows(&browser, "folder-verdict", "2 examples: 1 passed, 1 failed.").await;
    paste(&browser, "text", &HALF.replace("/ 2", "/ 1")).await;
    shows(&browser, "folder-save", "Save 1 file").await;
    browser.click("#folder-update").await;
    shows(&browser, "folder-verdict", "2 examples: 2 passed.").await;
    browser.click("#folder-save").await;
    shows(&browser, "folder-said", "Downloaded files.zip, with meter.js, meter.test.yaml").await;
    shows(&browser, "folder-save", "Nothing to save").await;
    // A codec gets its first examples.
    let other = dir.path().join("alone/my meter.mjs").display().to_string();
    fs::write(&other, HALF).unwrap();
    browser.client.find(fantoccini::Locator::Css("#files-input")).await.unwrap().send_keys(&other).await.unwrap();
    shows(&browser, "folder-verdict", "The codec has no examples.").await;
    paste(&browser, "payloads", "04").await;
    settle(&browser).await;
    browser.click("#examples-details summary").await;
    browser.click("#examples-save").await;
    shows(&browser, "examples", "Added to the folder: my meter.test.yaml").await;
    shows(&browser, "folder-verdict", "1 example: 1 passed.").await;
}
