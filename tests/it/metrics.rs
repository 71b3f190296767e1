//! Metrics: what a server reports, what is documented, and what the code has are the same.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    harness::PASSWORD,
    server_process::{ServerProcess, get},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Names of metrics in a text, without what Prometheus adds to those of histograms.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    let metrics = words.filter(|word| word.starts_with("airlock_") || word.starts_with("process_"));
    metrics.map(|word| family(word).to_owned()).collect()
}

fn family(name: &str) -> &str {
    let suffixes = ["_bucket", "_sum", "_count"];
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(ROOT).join("docs/operating.md")).unwrap();
    let (_, section) = text.split_once("\n## Health and metrics\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    names(&section.lines().filter(|line| line.starts_with("| `")).collect::<Vec<_>>().join("\n"))
}

/// The Rust files of the product, without tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names that the code has as texts of their own.
fn in_code() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&Path::new(ROOT).join("cli"), &mut files);
    for entry in fs::read_dir(ROOT).unwrap() {
        let dir = entry.unwrap().path().join("src");
        if dir.is_dir() {
            sources(&dir, &mut files);
        }
    }
    let mut found = BTreeSet::new();
    for file in files {
        for text in fs::read_to_string(file).unwrap().split('"') {
            let is_metric = text.starts_with("airlock_") || text.starts_with("process_");
            if is_metric && text.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                found.insert(text.to_owned());
            }
        }
    }
    found
}

#[test]
fn the_documentation_lists_every_metric() {
    let (documented, in_code) = (documented(), in_code());
    assert!(in_code.len() > 40, "{in_code:?}");
    assert_eq!(documented, in_code, "docs/operating.md has the left, and the code the right");
}

#[test]
fn every_reported_metric_is_documented_and_has_help_and_a_type() {
    let dir = tempfile::tempdir().unwrap();
    let process = ServerProcess::start(dir.path());
    for (arguments, input) in [
        (&["user", "register", "carol", "carol@example.com", "--password-stdin"][..], PASSWORD),
        (&["user", "login", "carol", "--password-stdin"], PASSWORD),
        (&["applications", "add", "carols-app", "Counted"], ""),
        (&["applications", "pf", "set", "decoder"], "function Decoder(bytes) { return { n: bytes.length }; }"),
        (&["devices", "register", "dev-1"], ""),
        (&["devices", "simulate", "dev-1", "00"], ""),
    ] {
        process.type_command(dir.path(), arguments, input);
    }
    let text = get(process.place("metrics"));
    let (_, text) = text.split_once("\r\n\r\n").unwrap();
    let declared = |what: &str| -> BTreeSet<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(what));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let samples = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    let families: BTreeSet<String> =
        samples.map(|line| family(line.split(['{', ' ']).next().unwrap()).to_owned()).collect();
    assert_eq!(families, declared("# TYPE "));
    assert_eq!(families, declared("# HELP "));
    assert_eq!(families.difference(&documented()).collect::<Vec<_>>(), Vec::<&String>::new());
    for expected in [
        "airlock_build_info{version=",
        "airlock_requests_waiting{service=\"handler\"} 0",
        "airlock_sandbox_waiting_messages{pool=\"handler\"} 0",
        "airlock_mqtt_queued_messages 0",
        "airlock_sandbox_seconds_bucket{le=\"+Inf\"} 1",
        "airlock_sandbox_fuel_bucket{le=\"+Inf\"} 1",
        "process_cpu_seconds_total ",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert!(!text.contains(" summary\n"), "a summary reports 0 while nothing happens:\n{text}");
    process.stop();
}

#[test]
fn the_dashboard_and_the_alerts_name_metrics_that_exist() {
    let documented = documented();
    for (file, metrics_min) in [("grafana/airlock.json", 30), ("prometheus/airlock-rules.yml", 12)] {
        let text = fs::read_to_string(Path::new(ROOT).join("packaging").join(file)).unwrap();
        let named = names(&text);
        assert!(named.len() >= metrics_min, "{file}: {named:?}");
        let unknown: Vec<_> = named.difference(&documented).collect();
        assert!(unknown.is_empty(), "{file} names metrics that do not exist: {unknown:?}");
    }
}
