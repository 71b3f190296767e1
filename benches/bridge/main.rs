//! Cost of an uplink in `airlock bridge chirpstack`: rate, processor time and memory, beside Node on the same input.
//!
//! Redis, Mosquitto, a stand-in for ChirpStack's API and the bridge share this machine. Events wait in Redis, or in a
//! session of Mosquitto, before the bridge starts. Forty device profiles have codecs of `AIRLOCK_CORPUS`, or our own.
//! Arguments name what is measured, such as `cargo bench --bench bridge mqtt redis`; without any it is everything.
//! `BRIDGE_UPLINKS` is the number of uplinks (150,000). Node needs `NODE_PATH` with the package `mqtt`, and gets a
//! process for each processor.
//! `AIRLOCK_BINARY` names another binary.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "benches are configured by environment variables, and poll")]

mod bridge_process;
mod input;
mod memory;
mod network;
mod peer;
#[path = "../shared/codecs.rs"]
mod records;
mod usage;

use std::env;

use testing::figures::Figures;

use crate::{bridge_process::BridgeProcess, input::Input, network::Network, usage::Measured};

/// Device profiles, each with as many devices.
const PROFILES: usize = 40;
const DEVICES: usize = 1000;

/// Names of the measurements, for arguments.
const NAMES: [&str; 8] = ["mqtt", "redis", "history", "brokers", "endless", "two", "node", "memory"];
/// Runs with and without history, by turns.
const TURNS: usize = 3;

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let uplinks = env::var("BRIDGE_UPLINKS").map_or(150_000, |number| number.parse().unwrap());
    let chosen = chosen();
    let has = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    let mut figures = Figures::default();
    let input = Input::new(PROFILES, DEVICES);
    if has("mqtt") || has("endless") {
        let usual = to_mqtt(&input, uplinks).await;
        figures.add("first decoded message", format!("{:.1} s", usual.first_s), "≤ 5 s");
        usual.add_to(&mut figures, "Redis to Mosquitto, QoS 1", "≥ 15,000/s");
        if has("endless") {
            endless(&input, uplinks, usual, &mut figures).await;
        }
    }
    if has("redis") {
        to_redis(&input, uplinks).await.add_to(&mut figures, "Redis to Redis", "≥ 30,000/s");
    }
    if has("history") {
        history(&input, uplinks, &mut figures).await;
    }
    if has("two") {
        two(&input, uplinks, &mut figures).await;
    }
    if has("brokers") || has("node") {
        let ours = between_brokers(&input, uplinks).await;
        ours.add_to(&mut figures, "Mosquitto to Mosquitto, QoS 1", "≥ 40,000/s");
        if has("node") {
            peer::compare(&input, uplinks, ours, &mut figures).await;
        }
    }
    if has("memory") {
        memory::measure(&mut figures).await;
    }
    figures.print();
}

/// The names among the arguments; Cargo adds options.
fn chosen() -> Vec<String> {
    let chosen: Vec<_> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let unknown = chosen.iter().find(|name| !NAMES.contains(&name.as_str()));
    assert!(unknown.is_none(), "{unknown:?} is none of {NAMES:?}");
    chosen
}

async fn to_mqtt(input: &Input, uplinks: usize) -> Measured {
    let network = Network::start(input).await;
    network.fill(input, uplinks);
    BridgeProcess::start(&network, &network.redis_to_mqtt()).measure(input.decoded(uplinks)).await
}

async fn to_redis(input: &Input, uplinks: usize) -> Measured {
    let network = Network::start(input).await;
    network.fill(input, uplinks);
    let arguments = ["--redis", &network.redis.url(), "--to", &network.out.url()];
    BridgeProcess::start(&network, &arguments).measure(input.decoded(uplinks)).await
}

/// The cost of recording uplinks.
async fn history(input: &Input, uplinks: usize, figures: &mut Figures) {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        with.push(to_redis(input, uplinks).await);
        let network = Network::start(input).await;
        network.fill(input, uplinks);
        let arguments = ["--redis", &network.redis.url(), "--to", &network.out.url()];
        let bridge = BridgeProcess::start_without_history(&network, &arguments);
        without.push(bridge.measure(input.decoded(uplinks)).await);
    }
    let median = |runs: &[Measured], of: fn(&Measured) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let lost = 1.0 - median(&with, |run| run.per_s) / median(&without, |run| run.per_s);
    figures.add("what history costs of the rate, Redis to Redis", format!("{:.1}%", lost * 100.0), "≤ 5%");
    let more = median(&with, |run| run.cpu_us) - median(&without, |run| run.cpu_us);
    figures.add("processor time of history per uplink", format!("{more:.1} µs"), "");
}

async fn between_brokers(input: &Input, uplinks: usize) -> Measured {
    let network = Network::start(input).await;
    let (url, dir) = (network.broker.url(), tempfile::tempdir().unwrap());
    let arguments = ["--mqtt", &url];
    // Its session keeps what comes after it has ended.
    let bridge = BridgeProcess::start_in(&network, &arguments, dir);
    bridge.ready().await;
    let dir = bridge.end();
    network.publish(input, uplinks).await;
    BridgeProcess::start_in(&network, &arguments, dir).measure(input.decoded(uplinks)).await
}

/// One more profile never ends; its devices send as much as those of the others.
async fn endless(input: &Input, uplinks: usize, usual: Measured, figures: &mut Figures) {
    let input = input.with_endless();
    let measured = to_mqtt(&input, uplinks).await;
    measured.add_to(figures, "the same beside a profile that never ends", "");
    let lost = 1.0 - measured.per_s / usual.per_s;
    figures.add("what it costs the others", format!("{:.1}%", lost * 100.0), "≤ 10% beyond its share, 2.4%");
}

async fn two(input: &Input, uplinks: usize, figures: &mut Figures) {
    let mut rates = Vec::new();
    for processes in [1, 2] {
        let network = Network::start(input).await;
        network.fill(input, uplinks);
        let bridges: Vec<_> =
            (0..processes).map(|_| BridgeProcess::start(&network, &network.redis_to_mqtt())).collect();
        rates.push(usage::rate(&bridges, uplinks).await);
    }
    figures.add("two processes ÷ one", format!("{:.2}", rates[1] / rates[0]), "");
}
