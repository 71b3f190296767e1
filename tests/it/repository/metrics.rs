//! Metrics: what a server reports, what is documented, and what the code has are the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use testing::{MqttClient, PATIENCE};

use crate::harness::{
    PASSWORD,
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
    let crates = [ROOT, concat!(env!("CARGO_MANIFEST_DIR"), "/crates")];
    for entry in crates.into_iter().flat_map(|dir| fs::read_dir(dir).unwrap()) {
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

/// The kind and the help text of each metric on its page of the documentation site; none without Python.
fn reference() -> Option<BTreeMap<String, (String, String)>> {
    let script = Path::new(ROOT).join("packaging/site/metrics.py");
    let Ok(output) = Command::new("python3").arg(script).output() else {
        testing::skip("python3 is missing", "install python3 to make the page of metrics");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let cells = rows.map(|row| {
        let (name, rest) = row.split_once("` | ").unwrap();
        let (kind, help) = rest.split_once(" | ").unwrap();
        (name.to_owned(), (kind.to_owned(), help.to_owned()))
    });
    Some(cells.collect())
}

#[test]
fn the_site_has_the_help_of_every_metric() {
    let Some(reference) = reference() else { return };
    let names: BTreeSet<String> = reference.into_keys().collect();
    assert_eq!(names, in_code(), "packaging/site/metrics.py finds the left, and the code has the right");
}

/// Checks that the site says of each reported metric what the process says.
fn check_reference(text: &str) {
    let Some(reference) = reference() else { return };
    let told = |what: &str| -> BTreeMap<String, String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(what)?.split_once(' '));
        lines.map(|(name, told)| (name.to_owned(), told.to_owned())).collect()
    };
    let (kinds, helps) = (told("# TYPE "), told("# HELP "));
    assert!(helps.len() > 20, "{text}");
    for (name, help) in helps {
        assert_eq!(reference.get(&name), Some(&(kinds[&name].clone(), help)), "{name}");
    }
}

/// All metrics, without the head of the response.
fn collect(process: &ServerProcess) -> String {
    get(process.place("metrics")).split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Reads the metrics until nothing waits any more, or for as long as a test may take.
fn collect_idle(process: &ServerProcess) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = collect(process);
        let waiting = text.lines().filter(|line| line.starts_with("airlock_") && line.contains("_waiting"));
        if waiting.map(|line| line.rsplit(' ').next()).all(|value| value == Some("0")) || Instant::now() > end {
            return text;
        }
    }
}

/// Checks that each reported metric is documented, and has its help and its type once.
fn check_declarations(text: &str) {
    let declared = |what: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(what));
        let mut names: Vec<_> = lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let samples = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    let families: BTreeSet<String> =
        samples.map(|line| family(line.split(['{', ' ']).next().unwrap()).to_owned()).collect();
    let families: Vec<_> = families.into_iter().collect();
    assert_eq!(families, declared("# TYPE "));
    assert_eq!(families, declared("# HELP "));
    let documented = documented();
    assert_eq!(families.iter().find(|family| !documented.contains(*family)), None);
}

// Conformance: Metrics of single applications, for a bounded number of them
#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_metrics_of_its_own() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let process = ServerProcess::start(dir.path());
    let (busy, quiet) = (process.owner(dir.path(), "busy").await, process.owner(dir.path(), "quiet").await);
    busy.add_device("dev-1").await;
    let mut listeners = Vec::new();
    for owner in [&busy, &quiet] {
        let (app_id, key) = (owner.app_id.as_str(), owner.key.expose());
        let mut listener = MqttClient::connect_with(process.place("MQTT"), app_id, key).await;
        listener.subscribe("+/devices/+/up").await;
        listeners.push(listener);
    }
    busy.simulate("dev-1", &[1], 1).await.unwrap();
    listeners[0].next().await;
    let text = collect(&process);
    check_declarations(&text);
    for expected in [
        "connections{application=\"busy-app\"} 1",
        "delivered_total{application=\"busy-app\"} 1",
        "dropped_total{application=\"busy-app\"} 0",
        "connections{application=\"quiet-app\"} 1",
        "queued_messages{application=\"quiet-app\"} 0",
        "delivered_total{application=\"quiet-app\"} 0",
    ] {
        let expected = format!("\nairlock_mqtt_application_{expected}\n");
        assert!(text.contains(&expected), "{expected} is not in:\n{text}");
    }
    process.stop();
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
        (&["applications", "pf", "set", "decoder", "--share", "99.99%"], "function Decoder() { return { n: 1 }; }"),
        (&["devices", "simulate", "dev-1", "00"], ""),
    ] {
        process.type_command(dir.path(), arguments, input);
    }
    let text = collect_idle(&process);
    check_declarations(&text);
    check_reference(&text);
    for expected in [
        "airlock_build_info{version=",
        "airlock_requests_waiting{service=\"handler\"} 0",
        "airlock_sandbox_waiting_messages{pool=\"handler\"} 0",
        "airlock_mqtt_queued_messages 0",
        "airlock_uplink_outcomes_total{outcome=\"decoded\",version=\"live\"} 1",
        "airlock_uplink_outcomes_total{outcome=\"decoded\",version=\"candidate\"} 1",
        "airlock_sandbox_seconds_bucket{le=\"+Inf\"} 2",
        "airlock_sandbox_fuel_bucket{le=\"+Inf\"} 2",
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
