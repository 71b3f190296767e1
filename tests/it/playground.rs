//! The playground: its sandbox gives what the server's gives.

mod vectors;

use std::{path::Path, process::Command};

use serde_json::Value;

use self::vectors::Vectors;
use crate::harness::run;

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

#[test]
fn the_sandbox_of_the_page_gives_what_the_servers_gives_to_the_unit_of_fuel() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if Command::new("node").arg("--version").output().is_err() {
        return testing::skip("node is missing", "install nodejs to run the sandbox of the playground");
    }
    let vectors = Vectors::new();
    let mut command = Command::new("node");
    command.arg(root.join("tests/it/playground/node.mjs")).arg(root);
    let output = run(&mut command, &vectors.to_json().to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check_equal(&vectors, &serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap());
    println!("{} calls are equal", vectors.calls());
}
