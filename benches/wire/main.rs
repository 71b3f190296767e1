//! What a call of the handler costs over the network, and whether that stays so with a million devices: a table with an
//! aim beside every figure.
//!
//! All services, a generator and the store's server share this machine and its processors; calls go over loopback
//! without TLS. Redis is skipped where there is no `redis-server`. Seconds per figure are in `WIRE_SECONDS`, 5 unless
//! set; devices and applications of the large store in `WIRE_DEVICES` and `WIRE_APPLICATIONS`, 1,000,000 and 10,000.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod calls;
mod dry;
#[path = "../shared/figures.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod figures;
mod list;
#[path = "../account/load.rs"]
#[allow(dead_code, reason = "shared with the bench of the account service")]
mod load;
#[path = "../shared/process.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod process;
#[path = "../../account/tests/it/redis.rs"]
mod redis;
mod scale;
mod shelf;
mod site;

use std::time::Duration;

use figures::Figures;
use server::telemetry::Metrics;
use shelf::Shelf;
use site::Site;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() {
    server::system::install_crypto();
    // There is one in a process.
    let metrics = Metrics::install(CancellationToken::new()).unwrap();
    let mut figures = Figures::default();
    for shelf in [Some(Shelf::file()), Shelf::redis()].into_iter().flatten() {
        let name = shelf.name();
        shelf.fill(1, list::DEVICES).await;
        let site = Site::start(shelf, &metrics).await;
        calls::measure(&mut figures, &site, name).await;
        list::measure(&mut figures, &site, name).await;
        site.stop().await;
    }
    dry::measure(&mut figures, &metrics).await;
    scale::measure(&mut figures, &metrics).await;
    figures.print();
}

fn seconds() -> Duration {
    Duration::from_secs(number("WIRE_SECONDS", 5) as u64)
}

fn number(name: &str, default: usize) -> usize {
    std::env::var_os(name).map_or(default, |text| text.to_str().unwrap().parse().unwrap())
}
