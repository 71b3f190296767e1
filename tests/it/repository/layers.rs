//! Dependencies point one way: the tables of ARCHITECTURE.md against `cargo metadata` and the source files.

mod imports;
mod public_types;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use serde_json::Value;

type Imports = BTreeMap<String, BTreeSet<String>>;

/// Each crate of the product and the directory of its sources.
const SOURCES: [(&str, &str); 24] = [
    ("types", "crates/types/src"),
    ("fair_queue", "crates/fair_queue/src"),
    ("api", "crates/api/src"),
    ("client", "crates/client/src"),
    ("device_file", "crates/device_file/src"),
    ("store", "crates/store/src"),
    ("server", "crates/server/src"),
    ("link", "crates/link/src"),
    ("runtime", "runtime/src"),
    ("guest", "runtime/guest/src"),
    ("mqtt", "mqtt/src"),
    ("bridge", "bridge/src"),
    ("chirpstack", "bridge/chirpstack/src"),
    ("things_stack", "bridge/things_stack/src"),
    ("codecs", "codecs/src"),
    ("outputs", "outputs/src"),
    ("history", "history/src"),
    ("handler", "handler/src"),
    ("account", "account/src"),
    ("discovery", "discovery/src"),
    ("console", "console/src"),
    ("workbench", "workbench/src"),
    ("replay", "replay/src"),
    ("cli", "cli"),
];

/// The modules of services that may use axum and tonic, with those inside them, beside `lib.rs`.
const API_MODULES: [&str; 6] = ["api", "grpc", "http", "openapi", "rest", "site"];

#[test]
fn crates_import_what_the_table_allows_and_nothing_else() {
    let allowed = table();
    assert!(allowed.len() >= 10, "ARCHITECTURE.md has no import table any more: {allowed:?}");
    for (name, imports) in imports() {
        let allowed = allowed.get(&name).unwrap_or_else(|| panic!("the import table does not know `{name}`"));
        assert_eq!(&imports, allowed, "`{name}` imports the left, and the table has the right");
    }
}

#[test]
fn libraries_stay_in_their_crates() {
    for (library, owners) in [
        ("amqprs", &["outputs"][..]),
        ("redis", &["link", "outputs", "store"]),
        ("redb", &["store"]),
        ("tokio-postgres", &["replay"]),
        ("rskafka", &["outputs"]),
        ("mqtt5-protocol", &["mqtt"]),
        ("rumqttc", &["link", "testing"]),
        ("wasmtime", &["guest-tool", "runtime"]),
        ("object_store", &["history"]),
        ("reqwest", &["client", "outputs", "testing"]),
        ("lettre", &["account"]),
    ] {
        let mut users: Vec<String> =
            packages().into_iter().filter(|package| uses(package, library)).map(|package| name(&package)).collect();
        users.sort();
        assert_eq!(users, owners, "the crates that use {library}");
    }
}

#[test]
fn every_dependency_is_used() {
    // Generated code uses it.
    let generated = ["tonic_prost", "pbjson", "pbjson_types"];
    for package in packages() {
        let text = match name(&package).as_str() {
            "cli" => source_text("cli"),
            _ => source_text(&format!("{}/src", directory(&package).display())),
        };
        let normal = dependencies(&package).filter(|dependency| dependency["kind"].is_null());
        let unused: Vec<_> = normal
            .map(identifier)
            .filter(|library| !generated.contains(&library.as_str()) && !is_named(library, &text))
            .collect();
        assert!(unused.is_empty(), "`{}` depends on {unused:?}, which its sources do not name", name(&package));
    }
}

/// The compiler does not look at a file that no module declares.
#[test]
fn every_file_is_a_module_of_its_crate() {
    for (name, src) in SOURCES {
        let sources = imports::sources(src);
        for module in sources.keys() {
            let Some((own, above)) = module.split_last() else { continue };
            let is_declared = sources.get(above).is_some_and(|text| text.contains(&format!("mod {own};")));
            assert!(is_declared || own == "main", "`{name}` does not declare {module:?}");
        }
    }
}

#[test]
fn only_api_modules_use_axum_and_tonic() {
    for service in [
        "handler",
        "account",
        "discovery",
        "mqtt",
        "bridge",
        "bridge/chirpstack",
        "bridge/things_stack",
        "codecs",
        "console",
    ] {
        for (module, text) in imports::sources(&format!("{service}/src")) {
            let is_api = module.first().is_none_or(|first| API_MODULES.contains(&first.as_str()));
            let is_user = ["axum", "tonic"].iter().any(|library| is_named(library, &text));
            assert!(is_api || !is_user, "`{service}`: {module:?} uses axum or tonic, which only API modules may");
        }
    }
}

#[test]
fn files_do_not_import_each_other_in_cycles() {
    for (name, src) in SOURCES {
        let cycles = imports::cycles(&imports::between_modules(src));
        assert!(cycles.is_empty(), "`{name}` has import cycles: {cycles:#?}");
    }
}

#[test]
fn modules_import_only_those_after_them() {
    let orders = module_orders();
    for (name, src) in SOURCES {
        let Some(order) = orders.get(name) else { continue };
        let position = |module: &imports::Module| order.iter().position(|dir| Some(dir) == module.first());
        for (module, imported) in imports::between_modules(src) {
            for other in imported {
                let (Some(from), Some(to)) = (position(&module), position(&other)) else { continue };
                assert!(from <= to, "`{name}`: {module:?} imports {other:?}, against the order in ARCHITECTURE.md");
            }
        }
    }
}

#[test]
fn every_module_has_a_place_in_the_order() {
    let orders = module_orders();
    for (name, src) in SOURCES.into_iter().filter(|(name, _)| !["types", "api"].contains(name)) {
        let modules: BTreeSet<String> = imports::between_modules(src).into_keys().map(|path| path[0].clone()).collect();
        let order = orders.get(name).cloned().unwrap_or_default();
        let placed: BTreeSet<String> = order.into_iter().chain(["main".to_owned()]).collect();
        let missing: Vec<_> = modules.difference(&placed).collect();
        assert!(missing.is_empty(), "`{name}`: ARCHITECTURE.md does not order {missing:?}");
        let gone: Vec<_> = placed.difference(&modules).filter(|module| *module != "main").collect();
        assert!(gone.is_empty(), "`{name}`: ARCHITECTURE.md orders {gone:?}, which do not exist");
    }
}

#[test]
fn paths_in_architecture_exist() {
    let missing: Vec<_> = paths().into_iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names paths that do not exist: {missing:?}");
}

#[test]
fn public_types_of_a_crate_have_distinct_names() {
    for (name, src) in SOURCES {
        let repeated = public_types::repeated(src);
        assert!(repeated.is_empty(), "`{name}` has several public types of one name: {repeated:?}");
    }
}

/// The words of ARCHITECTURE.md and of the glossary that are formatted as code and look like paths.
fn paths() -> Vec<&'static str> {
    let pages = [include_str!("../../../ARCHITECTURE.md"), include_str!("../../../docs/glossary.md")];
    let words = pages.into_iter().flat_map(|page| page.split('`').skip(1).step_by(2));
    let paths: Vec<_> = words.filter(|word| is_path(word)).collect();
    assert!(paths.len() > 150, "the pages name hardly any paths: {paths:?}");
    paths
}

fn is_path(word: &str) -> bool {
    let is_plain = word.chars().all(|character| character.is_ascii_alphanumeric() || "/._-".contains(character));
    is_plain && !word.starts_with('/') && ["/", ".rs", ".md", ".py"].iter().any(|end| word.ends_with(end))
}

/// Returns true if a path exists, from the root or, in the path of an uplink, from the sources of the handler.
fn exists(path: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(path).exists() || root.join("handler/src").join(path).exists()
}

/// Reads the rows `| crate | module, module, … |` below the header `| crate | modules …`.
fn module_orders() -> BTreeMap<String, Vec<String>> {
    let text = include_str!("../../../ARCHITECTURE.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| crate | modules")).map(cells);
    rows.skip(2)
        .take_while(|cells| cells.len() == 2)
        .map(|cells| (cells[0].clone(), cells[1].replace('`', "").split(", ").map(str::to_owned).collect()))
        .collect()
}

/// Reads the rows `| crate, crate | ✓ | … |` below the header `| may import → | types | … |`.
fn table() -> Imports {
    let text = include_str!("../../../ARCHITECTURE.md");
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

fn directory(package: &Value) -> &Path {
    package["manifest_path"].as_str().and_then(|file| Path::new(file).parent()).expect("a package has a manifest")
}

/// The name by which sources name a dependency.
fn identifier(dependency: &Value) -> String {
    let name = dependency["rename"].as_str().or(dependency["name"].as_str());
    name.unwrap_or_default().replace('-', "_")
}

fn source_text(src: &str) -> String {
    imports::sources(src).into_values().collect()
}

/// Returns true if a path in the source begins with this crate.
fn is_named(library: &str, text: &str) -> bool {
    text.match_indices(library).any(|(at, _)| {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let after = &text[at + library.len()..];
        !before.is_alphanumeric()
            && !"_:".contains(before)
            && ["::", " as ", ";"].iter().any(|end| after.starts_with(end))
    })
}

fn name(package: &Value) -> String {
    match package["name"].as_str() {
        Some("airlock") => "cli".to_owned(),
        Some(name) => name.trim_start_matches("airlock-").to_owned(),
        None => String::new(),
    }
}
