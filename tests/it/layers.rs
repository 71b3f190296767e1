//! Dependencies between crates: the import table of ARCHITECTURE.md against `cargo metadata`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn crates_import_what_the_table_allows_and_nothing_else() {
    let allowed = table();
    assert!(allowed.len() >= 10, "ARCHITECTURE.md has no import table any more: {allowed:?}");
    for (name, imports) in imports() {
        let allowed = allowed.get(&name).unwrap_or_else(|| panic!("the import table does not know `{name}`"));
        let surplus: Vec<_> = imports.difference(allowed).collect();
        assert!(surplus.is_empty(), "`{name}` imports {surplus:?}, which the table does not allow");
    }
}

#[test]
fn only_one_crate_names_each_protocol() {
    for (library, owners) in [
        ("redis", &["store"][..]),
        ("redb", &["store"]),
        ("mqtt5", &["mqtt"]),
        ("rumqttc", &["client", "handler", "mqtt"]),
        ("wasmtime", &["runtime"]),
        ("reqwest", &["client", "testing"]),
    ] {
        let users: Vec<String> =
            packages().into_iter().filter(|package| uses(package, library)).map(|package| name(&package)).collect();
        assert!(users.iter().all(|user| owners.contains(&user.as_str())), "{library} is used by {users:?}");
    }
}

/// Reads the rows `| crate, crate | ✓ | … |` below the header `| may import → | types | … |`.
fn table() -> Imports {
    let text = include_str!("../../ARCHITECTURE.md");
    let mut rows = text.lines().skip_while(|line| !line.starts_with("| may import")).map(cells);
    let header = rows.next().unwrap_or_default();
    rows.skip(1)
        .take_while(|cells| cells.len() == header.len())
        .flat_map(|cells| {
            let imports: BTreeSet<String> = header
                .iter()
                .zip(&cells)
                .skip(1)
                .filter(|(_, mark)| mark.as_str() == "✓")
                .map(|(name, _)| name.clone())
                .collect();
            cells[0].split(", ").map(|name| (name.to_owned(), imports.clone())).collect::<Vec<_>>()
        })
        .collect()
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The imports of each of our crates; the root package is `cli`.
fn imports() -> Imports {
    packages()
        .iter()
        .map(|package| {
            let ours = dependencies(package)
                .filter(|dependency| dependency["path"].is_string() && dependency["kind"].is_null())
                .map(name);
            (name(package), ours.collect())
        })
        .collect()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    metadata["packages"].as_array_mut().map(std::mem::take).expect("metadata lists packages")
}

fn dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().into_iter().flatten()
}

fn uses(package: &Value, library: &str) -> bool {
    dependencies(package).any(|dependency| dependency["name"] == library && dependency["kind"].is_null())
}

fn name(package: &Value) -> String {
    match package["name"].as_str() {
        Some("airlock") => "cli".to_owned(),
        Some(name) => name.trim_start_matches("airlock-").to_owned(),
        None => String::new(),
    }
}
