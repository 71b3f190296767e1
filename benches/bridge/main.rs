//! What `airlock bridge chirpstack` takes for an uplink: rate, processor time and memory, beside Node on the same input.
//!
//! Redis, Mosquitto, a stand-in for ChirpStack's API and the bridge share this machine. Events wait in Redis, or in a
//! session of Mosquitto, before the bridge starts. Forty device profiles have codecs of `AIRLOCK_CORPUS`, or our own.
//! `BRIDGE_UPLINKS` is the number of uplinks (300,000), `BRIDGE_WAYS` names what is measured: `mqtt`, `redis`,
//! `endless`, `two`, `node`, `memory`. Node needs `NODE_PATH` with the package `mqtt`. `AIRLOCK_BINARY` names another
//! binary.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "benches are configured by environment variables, and poll")]

mod bridge_process;
mod input;
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

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let uplinks = number("BRIDGE_UPLINKS", 300_000);
    let ways = env::var("BRIDGE_WAYS").unwrap_or_else(|_| "mqtt,redis,endless,two,node,memory".to_owned());
    let has = |way: &str| ways.split(',').any(|chosen| chosen == way);
    let mut figures = Figures::default();
    let input = Input::new(PROFILES, DEVICES);
    let mut usual = None;
    if has("mqtt") || has("endless") {
        let measured = to_mqtt(&input, uplinks).await;
        figures.add("first decoded message", format!("{:.1} s", measured.first_s), "≤ 5 s");
        measured.add_to(&mut figures, "Redis to Mosquitto, QoS 1", "≥ 15,000/s");
        usual = Some(measured);
    }
    if has("redis") {
        let network = Network::start(&input).await;
        network.fill(&input, uplinks);
        let bridge = BridgeProcess::start(&network, &["--redis", &network.redis.url(), "--to", &network.out.url()]);
        bridge.measure(uplinks).await.add_to(&mut figures, "Redis to Redis", "≥ 30,000/s");
    }
    if has("endless") {
        endless(&input, uplinks, usual.unwrap(), &mut figures).await;
    }
    if has("two") {
        two(&input, uplinks, &mut figures).await;
    }
    if has("node") {
        peer::compare(&input, &mut figures).await;
    }
    if has("memory") {
        let input = Input::new(1000, 100_000);
        let network = Network::start(&input).await;
        let bridge = BridgeProcess::start(&network, &network.redis_to_mqtt());
        // Uplinks are not decoded while too many other devices are being asked for, so that it takes several rounds.
        let mut rounds = 0;
        while bridge.decoded() < 100_000 {
            rounds += 1;
            network.fill_from(&input, rounds * 100_000, 100_000);
            bridge.until_finished(rounds * 100_000).await;
        }
        figures.add("1,000 profiles, 100,000 devices", format!("{:.0} MB", bridge.resident_mb()), "≤ 300 MB");
    }
    figures.print();
}

async fn to_mqtt(input: &Input, uplinks: usize) -> Measured {
    let network = Network::start(input).await;
    network.fill(input, uplinks);
    BridgeProcess::start(&network, &network.redis_to_mqtt()).measure(input.decoded(uplinks)).await
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

fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}
