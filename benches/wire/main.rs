//! Cost of a call to the handler over the network, with few devices in the store and with a million. Prints a table of
//! figures and goals.
//!
//! The services, the load generator and Redis share this machine; calls go over loopback without TLS. Redis is skipped
//! if `redis-server` is not installed. `WIRE_SECONDS` is the time per figure (5 by default); `WIRE_DEVICES` and
//! `WIRE_APPLICATIONS` are the size of the large store (1,000,000 and 10,000).

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod calls;
mod dataset;
mod dry_run;
mod list;
mod scale;
mod services;

use std::time::Duration;
use testing::figures;
use testing::process;

use dataset::Dataset;
use figures::Figures;
use server::telemetry::Metrics;
use services::Services;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() {
    server::system::install_crypto();
    // A process can install only one.
    let metrics = Metrics::install(CancellationToken::new()).unwrap();
    let mut figures = Figures::default();
    for dataset in [Some(Dataset::file()), Dataset::redis()].into_iter().flatten() {
        let name = dataset.name();
        dataset.fill(1, list::LISTED_DEVICES).await;
        let services = Services::start(dataset, &metrics).await;
        calls::measure(&mut figures, &services, name).await;
        list::measure(&mut figures, &services, name).await;
        list::measure_few(&mut figures, &services, name).await;
        services.stop().await;
    }
    dry_run::measure(&mut figures, &metrics).await;
    scale::measure(&mut figures, &metrics).await;
    figures.print();
}

fn seconds() -> Duration {
    Duration::from_secs(number("WIRE_SECONDS", 5) as u64)
}

fn number(name: &str, default: usize) -> usize {
    std::env::var_os(name).map_or(default, |text| text.to_str().unwrap().parse().unwrap())
}
