//! Cost of an uplink for the server when applications come in turn, each with a token of its own.
//!
//! Starts `airlock serve` as a process of its own and talks to it over REST on loopback; `AIRLOCK_BINARY` names another
//! binary than the one built with this bench. Uplinks of 1, 266 and `APPLICATIONS` (10,000 by default) applications in
//! turn pass a short decoder, over 16 connections, with tokens, and with access keys. CPU time is the server's, user and
//! system, from /proc. Each row follows one round that is not counted, and takes `UPLINK_SECONDS`, 10 by default.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod server_process;

use std::time::Duration;

use serde_json::json;
use server_process::{Application, DEVICE, ServerProcess};
use testing::load::Load;

const CONNECTIONS: usize = 16;
/// Registering users is limited.
const APPLICATIONS_PER_OWNER: usize = 1000;

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let number = |name, default| std::env::var_os(name).map_or(default, |text| text.to_str().unwrap().parse().unwrap());
    let (applications, seconds) = (number("APPLICATIONS", 10_000), number("UPLINK_SECONDS", 10));
    // Registering makes more changes than people do.
    let server =
        ServerProcess::start("telemetry.audit_changes = { burst = 1000000000, per_hour = 1000000000 }\n").await;
    let applications = register(&server, applications).await;
    println!(
        "| applications in turn | credential | CPU per uplink | uplinks/s | p50 | p99 |\n|--:|---|--:|--:|--:|--:|"
    );
    for count in [1, 266, applications.len()] {
        let applications = &applications[..count];
        let tokens = applications.iter().map(|application| application.uplink(DEVICE)).collect();
        row(&server, &format!("{count} | token"), tokens, seconds as u64).await;
        let keys = applications.iter().map(|application| application.uplink_with_key(DEVICE)).collect();
        row(&server, &format!("{count} | access key"), keys, seconds as u64).await;
    }
}

async fn register(server: &ServerProcess, count: usize) -> Vec<Application> {
    let functions = json!({
        "payload_format": "custom",
        "decoder": "function Decoder(bytes) { return { n: bytes[0] }; }",
    });
    let mut applications = Vec::with_capacity(count);
    let mut owner = server.register("owner-0").await;
    for number in 0..count {
        if number > 0 && number % APPLICATIONS_PER_OWNER == 0 {
            owner = server.register(&format!("owner-{}", number / APPLICATIONS_PER_OWNER)).await;
        }
        applications.push(server.add_application(&owner, &format!("app-{number}"), functions.clone()).await);
    }
    applications
}

async fn row(server: &ServerProcess, name: &str, requests: Vec<Vec<u8>>, seconds: u64) {
    let round = requests.len().max(1_000);
    let load = Load::in_turn(server.handler, requests, CONNECTIONS);
    load.clone().run_times(round).await.all(200);
    let before = server.cpu_time();
    let taken = load.run_for(Duration::from_secs(seconds)).await;
    taken.all(200);
    let cpu = (server.cpu_time() - before).as_secs_f64() * 1e6 / taken.of(200) as f64;
    let [p50, p99] = [0.5, 0.99].map(|part| taken.quantile_ms(part));
    println!("| {name} | {cpu:.1} µs | {:.0} | {p50:.2} ms | {p99:.2} ms |", taken.per_second());
}
