//! Rate at which a handler decodes stored uplinks again, and its processor time and memory.
//!
//! Starts `airlock serve`, stores uplinks beside it, as many for each of 40 codecs, and has them decoded over HTTP: first
//! to see what changes, then to keep it, then against what was kept; and at last as previews of changes. Two
//! applications are decoded at the same time. `AIRLOCK_DECODE_UPLINKS` is how many there are, in thousands, 1000 by
//! default; `AIRLOCK_CORPUS` names a directory with codecs, `AIRLOCK_BINARY` another binary.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod input;
#[path = "../shared/codecs.rs"]
mod records;
#[path = "../uplink_http/server_process.rs"]
mod server_process;

use std::{
    env, fs,
    time::{Duration, Instant},
};

use api::rest::handler::{DecodeReport, Verdicts};
use futures::{StreamExt, stream};
use input::Source;
use serde_json::{Value, json};
use server_process::{Application, ServerProcess};

/// Number of codecs, each of an application.
const CODECS: usize = 40;
/// Number of applications that are decoded at the same time.
const AT_ONCE: usize = 2;
/// Number of codecs that previews are of, evenly chosen: one alone may take a multiple of what another takes.
const PREVIEWS: usize = 5;
/// Number of uplinks that a preview decodes, and of their devices.
const PREVIEWED: usize = 100_000;
const PREVIEWED_DEVICES: usize = 10_000;

#[tokio::main]
async fn main() {
    server::system::install_crypto();
    let thousands: usize =
        env::var_os("AIRLOCK_DECODE_UPLINKS").map_or(1000, |text| text.to_str().unwrap().parse().unwrap());
    let server = ServerProcess::start("history = { bytes_max = 1000000000000, days_max = 3650 }").await;
    let owner = server.register("bench").await;
    let sources = input::sources(CODECS);
    let each = thousands * 1000 / sources.len();
    let mut applications = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        applications.push(add(&server, &owner, &format!("bench-{number}"), source).await);
    }
    let mut previews = Vec::new();
    for (number, source) in sources.iter().step_by(CODECS / PREVIEWS).enumerate() {
        previews.push((add(&server, &owner, &format!("bench-preview-{number}"), source).await, source));
    }
    store(&server, (&applications, &sources, each), &previews).await;

    println!("{}, {} codecs, {each} uplinks of each\n", server.binary, sources.len());
    println!("| decoded again | uplinks/s | CPU per uplink | peak memory | found |\n|---|--:|--:|--:|---|");
    for (what, body) in [
        ("to see what changes", json!({})),
        ("to keep what changes", json!({ "write": true })),
        ("against what was kept", json!({})),
    ] {
        measure(&server, what, &applications, &body).await;
    }
    for (application, source) in &previews {
        let application = std::slice::from_ref(application);
        measure(&server, "first, those of the preview", application, &json!({ "write": true })).await;
        let mut changed = source.functions.clone();
        changed["decoder"] = format!("{}\n// A change.", changed["decoder"].as_str().unwrap()).into();
        let body = json!({ "functions": changed, "compare_live": true, "per_device": PREVIEWED / PREVIEWED_DEVICES });
        measure(&server, &format!("preview of a change, {}", source.codec), application, &body).await;
    }
}

async fn add(server: &ServerProcess, owner: &types::Secret, id: &str, source: &Source) -> Application {
    let application = server.add_application(owner, id, source.functions.clone()).await;
    assert!(!source.codec.is_empty());
    application
}

/// Stores uplinks in files that the server reads, too.
async fn store(
    server: &ServerProcess,
    (applications, sources, each): (&[Application], &[Source], usize),
    previews: &[(Application, &Source)],
) {
    let history = input::open(&server.dir().join("history"));
    for (application, source) in applications.iter().zip(sources) {
        input::fill(&history, &application.id.parse().unwrap(), source, each, 100).await;
    }
    for (application, source) in previews {
        input::fill(&history, &application.id.parse().unwrap(), source, PREVIEWED, PREVIEWED_DEVICES).await;
    }
    history.seal().await.unwrap();
    history.close().await.unwrap();
}

async fn measure(server: &ServerProcess, what: &str, applications: &[Application], body: &Value) {
    let (before, start) = (server.cpu_time(), Instant::now());
    let totals = stream::iter(applications)
        .map(|application| decode(server, application, body))
        .buffer_unordered(AT_ONCE)
        .fold(DecodeReport::default(), |mut total, report| async {
            total.add(report);
            total
        });
    let totals = totals.await;
    let (took, cpu) = (start.elapsed(), server.cpu_time() - before);
    let uplinks = totals.examined as f64;
    let DecodeReport { verdicts, written, .. } = totals;
    let Verdicts { equal, already_corrected, changed, newly_decoded, still_failing, newly_failing } = verdicts;
    println!(
        "| {what} | {:.0} in {:.1} s | {:.1} µs | {} MB | {equal} equal, {already_corrected} already corrected, \
         {changed} changed, {newly_decoded} newly decoded, {still_failing} still failing, \
         {newly_failing} newly failing, {written} kept |",
        uplinks / took.as_secs_f64(),
        took.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / uplinks,
        peak_memory(server),
    );
}

async fn decode(server: &ServerProcess, application: &Application, body: &Value) -> DecodeReport {
    let url = format!("http://{}/applications/{}/history/decode", server.handler, application.id);
    let request = reqwest::Client::new().post(url).bearer_auth(application.token.expose()).json(body);
    let response = request.timeout(Duration::from_secs(3600)).send().await.unwrap();
    assert!(response.status().is_success(), "{}", response.text().await.unwrap());
    let mut total = DecodeReport::default();
    for line in response.text().await.unwrap().lines() {
        let report: DecodeReport = serde_json::from_str(line).unwrap();
        assert_eq!(report.error, "");
        total.add(report);
    }
    assert!(total.done);
    total
}

/// The largest resident memory of the server so far, in megabytes.
fn peak_memory(server: &ServerProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1000
}
