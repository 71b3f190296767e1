//! Throughput and latency of the account service, with a goal for every figure.
//!
//! The service uses an embedded store on disk and is called over HTTP on loopback; service and load generator share a
//! process and its processors. `ACCOUNT_SECONDS` sets the duration per figure, by default 10; `ACCOUNT_TOKENS` the
//! number of tokens issued for the last figure, by default 200,000.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod site;

use std::time::Duration;

use site::Site;
use testing::{
    figures::Figures,
    load::{Load, Taken},
    process,
};

const IN_FLIGHT: usize = 32;
const STEADY_PER_SECOND: u32 = 500;
const STEADY_IN_FLIGHT: usize = 16;
const LOGINS: usize = 200;
const TOKENS_PER_LOOK: usize = 50_000;

#[tokio::main]
async fn main() {
    let (site, mut figures) = (Site::start().await, Figures::default());
    resident(&mut figures, "at the start");
    rates(&site, &mut figures).await;
    resident(&mut figures, "after these");
    beside_logins(&site, &mut figures).await;
    resident(&mut figures, "after the logins");
    memory(&site, &mut figures).await;
    figures.print();
}

async fn rates(site: &Site, figures: &mut Figures) {
    for (name, request, rate_min) in [
        ("GET an application with a bearer token", &site.get, "≥ 5,000/s, p99 ≤ 20 ms"),
        ("GET the own profile with a bearer token", &site.me, "≥ 5,000/s, p99 ≤ 20 ms"),
        ("exchange of an access key", &site.exchange, "≥ 2,000/s"),
    ] {
        warm(site, request).await;
        let taken = Load::new(site.address, request, IN_FLIGHT).run_for(seconds()).await;
        taken.all(200);
        figures.add(name, format!("{:.0}/s, {}", taken.per_second(), quantiles(&taken)), rate_min);
    }
}

async fn beside_logins(site: &Site, figures: &mut Figures) {
    for (name, request) in [("GET", &site.get), ("exchange", &site.exchange)] {
        let steady = || Load::new(site.address, request, STEADY_IN_FLIGHT).at(STEADY_PER_SECOND);
        let alone = steady().run_for(seconds()).await;
        let logins = Load::new(site.address, &site.login, LOGINS).backing_off(Duration::from_secs(1));
        let (beside, logins) = tokio::join!(steady().run_for(seconds()), logins.run_for(seconds()));
        alone.all(200);
        beside.all(200);
        let ratio = beside.quantile_ms(0.99) / alone.quantile_ms(0.99);
        let name = format!("{name} beside {LOGINS} logins: p99 ÷ p99 alone");
        let measured = format!("{ratio:.1} ({}, alone {})", quantiles(&beside), quantiles(&alone));
        figures.add(&name, measured, "≤ 2");
        figures.add("logins meanwhile", format!("{:.0}/s", logins.of(200) as f64 / seconds().as_secs_f64()), "");
    }
}

async fn memory(site: &Site, figures: &mut Figures) {
    let load = || Load::new(site.address, &site.exchange, IN_FLIGHT);
    load().run_times(TOKENS_PER_LOOK).await.all(200);
    let before = process::resident_mib();
    let tokens = number("ACCOUNT_TOKENS", 200_000);
    for done in (0..tokens).step_by(TOKENS_PER_LOOK) {
        load().run_times(TOKENS_PER_LOOK.min(tokens - done)).await.all(200);
        println!("after {} tokens: {:.1} MiB", done + TOKENS_PER_LOOK, process::resident_mib());
    }
    let after = process::resident_mib();
    let name = format!("resident memory after {tokens} more tokens ÷ before");
    figures.add(&name, format!("{:.3} ({after:.0} MiB)", after / before), "≤ 1.05");
}

fn resident(figures: &mut Figures, when: &str) {
    figures.add(&format!("resident memory {when}"), format!("{:.0} MiB", process::resident_mib()), "");
}

async fn warm(site: &Site, request: &[u8]) {
    Load::new(site.address, request, IN_FLIGHT).run_times(2000).await.all(200);
}

fn quantiles(taken: &Taken) -> String {
    format!("p50 {:.1} ms, p99 {:.1} ms", taken.quantile_ms(0.5), taken.quantile_ms(0.99))
}

fn seconds() -> Duration {
    Duration::from_secs(number("ACCOUNT_SECONDS", 10) as u64)
}

fn number(name: &str, default: usize) -> usize {
    std::env::var_os(name).map_or(default, |text| text.to_str().unwrap().parse().unwrap())
}
