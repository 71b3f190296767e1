//! The playground: its sandbox gives what the server's gives, its page shows that, and its command serves only the page.

mod editor;
mod examples;
mod folder;
mod fuzz;
mod networks;
mod page;
mod vectors;

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use sha2::{Digest, Sha256};

use self::{page::Playground, vectors::Vectors};
use crate::harness::{airlock, complaint, run};

/// Compares outcomes one by one, so that a failure shows which differs.
fn check_equal(vectors: &Vectors, page: &[Value]) {
    let server = vectors.outcomes();
    assert_eq!(server.len(), page.len());
    for (index, (server, page)) in server.iter().zip(page).enumerate() {
        let calls = |outcome: &Value| outcome["calls"].as_array().unwrap().clone();
        for (call, (server, page)) in calls(server).iter().zip(&calls(page)).enumerate() {
            assert_eq!(server, page, "call {call} of {}", vectors.to_json()["vectors"][index]);
        }
        assert_eq!(server, page, "{}", vectors.to_json()["vectors"][index]);
    }
}

/// Runs the vectors in the sandbox of the page, in Node.js: their `outcomes`, or their `profiles`.
fn in_node(vectors: &Vectors, what: &str) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("node");
    command.arg(root.join("tests/it/playground/node.mjs")).arg(root).arg(what);
    let output = run(&mut command, &vectors.to_json().to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

// Conformance: playground
#[test]
fn the_sandbox_of_the_page_gives_what_the_servers_gives_to_the_unit_of_fuel() {
    if !has_node() {
        return;
    }
    let vectors = Vectors::new();
    check_equal(&vectors, &in_node(&vectors, "outcomes"));
    println!("{} calls are equal", vectors.calls());
}

// Conformance: playground
#[test]
fn each_line_costs_in_the_page_what_it_costs_in_the_server() {
    if !has_node() {
        return;
    }
    let vectors = Vectors::new();
    let (server, page) = (vectors.profiles(), in_node(&vectors, "profiles"));
    assert_eq!(server.len(), page.len());
    for (index, (server, page)) in server.iter().zip(&page).enumerate() {
        assert_eq!(server, page, "{}", vectors.to_json()["vectors"][index]["sources"]);
    }
    let has_lines = |profile: &Value| profile[0]["lines"].as_array().is_some_and(|lines| lines.len() > 1);
    assert!(page.iter().filter(|profile| has_lines(profile)).count() > 20, "few codecs ran");
}

/// This needs no toolchain for WebAssembly, so it compares hashes; `workbench/browser/build.sh --check` compares the bytes.
// Conformance: playground
#[test]
fn the_committed_workbench_matches_its_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sums = fs::read_to_string(root.join("workbench/browser.sums")).unwrap();
    let files: Vec<(&str, &str)> = sums.lines().filter_map(|line| line.split_once(' ')).collect();
    for named in ["workbench/browser.wasm", "workbench/browser/src/lib.rs", "workbench/src/lint.rs"] {
        assert!(files.iter().any(|(_, file)| *file == named), "{named}");
    }
    for (sum, file) in files {
        let found = hex::encode(Sha256::digest(fs::read(root.join(file)).unwrap_or_default()));
        let advice = "has changed since workbench/browser.wasm was built: run workbench/browser/build.sh and commit what it gives";
        assert_eq!(sum, found, "{file} {advice}");
    }
    let check = fs::read_to_string(root.join("check")).unwrap();
    let asks =
        |line: &str| line.contains("step workbench") && line.contains("workbench/browser/build.sh --check-changed");
    assert!(check.lines().any(asks), "`check` asks for it");
}

fn has_node() -> bool {
    let is_there = Command::new("node").arg("--version").output().is_ok();
    if !is_there {
        testing::skip("node is missing", "install nodejs to run the scripts of the playground");
    }
    is_there
}

// Conformance: playground
#[test]
fn the_page_reads_payloads_messages_and_links() {
    if !has_node() {
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/playground/messages.mjs");
    let output = Command::new("node").arg("--test").arg(tests).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

// Conformance: playground
#[tokio::test]
async fn only_the_page_and_this_machine_get_the_opened_file() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("decoder.js");
    fs::write(&file, "function Decoder() { return {}; }").unwrap();
    let playground = Playground::start(dir.path(), &[file.to_str().unwrap()]);
    let client = reqwest::Client::new();
    let get = |path: &str| client.get(format!("{}{path}", playground.url));
    let opened: Value = get("opened.json").send().await.unwrap().json().await.unwrap();
    assert_eq!(opened["text"], "function Decoder() { return {}; }");
    let limits: Value = get("limits.json").send().await.unwrap().json().await.unwrap();
    assert_eq!(limits, serde_json::to_value(runtime::Limits::default()).unwrap());
    let elsewhere = get("opened.json").header("host", "attacker.example").send().await.unwrap();
    assert_eq!(elsewhere.status(), 403);
    for path in ["", "worker.js"] {
        let page = get(path).send().await.unwrap();
        let policy = page.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self' 'wasm-unsafe-eval';"), "{policy}");
        assert!(!policy.contains("unsafe-inline"), "{policy}");
        let tag = page.headers()["etag"].clone();
        assert_eq!(get(path).header("if-none-match", tag).send().await.unwrap().status(), 304);
    }
    let guest = get("guest.wasm").header("accept-encoding", "gzip, deflate, br").send().await.unwrap();
    assert_eq!(guest.headers()["content-encoding"], "deflate");
    let guest = miniz_oxide::inflate::decompress_to_vec_zlib(&guest.bytes().await.unwrap()).unwrap();
    assert!(guest == runtime::GUEST);
    assert_eq!(get("../Cargo.toml").send().await.unwrap().status(), 404);
}

// Conformance: playground
#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let told = complaint(&run(airlock(dir.path()).args(["playground", "missing.js"]), ""));
    assert!(told.contains("missing.js"), "{told}");
    let told = complaint(&run(airlock(dir.path()).args(["playground", "--listen", "nowhere"]), ""));
    assert!(told.contains("127.0.0.1:8080"), "{told}");
}
