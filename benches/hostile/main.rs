//! What hostile functions cost others, and the overhead of the worker pool, with a goal for every figure.
//!
//! Criterion cannot measure these: every figure is a ratio of loads that take turns on the same machine, and the median
//! of many short rounds. `HOSTILE_SECONDS` sets the duration of a round, by default 0.2.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod latency;
mod limits;
mod message;
mod traffic;

use std::{sync::Arc, time::Duration};

use runtime::{Engine, Settings};

use message::{HONEST, load};
use testing::figures::{Figures, median};
use traffic::Traffic;

/// Number of rounds, of which the median counts.
const ROUNDS: usize = 15;

fn main() {
    let mut figures = Figures::default();
    beside_endless(&mut figures);
    scaling(&mut figures);
    latencies(&mut figures);
    let (ours, theirs, runs) = limits::false_verdicts();
    figures.add("false verdicts under 4 times CPU oversubscription", format!("{ours} of {runs}"), "0");
    figures.add("the same, QuickJS with a limit of 100 ms", format!("{theirs} of {runs}"), "(a peer)");
    let growth = limits::bombs();
    figures.add("resident memory after 10,000 memory bombs ÷ before", format!("{growth:.3}"), "≤ 1.05");
    figures.print();
}

fn beside_endless(figures: &mut Figures) {
    let traffic = Traffic::new(2);
    let [share] = medians(|| [traffic.honest_beside_endless(seconds())]);
    figures.add(
        "honest messages, 36 in flight beside 4 endless loops ÷ what fuel predicts",
        format!("{share:.2}"),
        "≥ 0.95",
    );
}

/// The load generator shares the processors with the pool's workers; plain threads need none.
fn scaling(figures: &mut Figures) {
    let (engine, traffics) = (engine(), [Traffic::new(1), Traffic::new(2)]);
    let functions = load(&engine, HONEST);
    let [plain, peer, pool, one, two] = medians(|| {
        let peer = [1, 2].map(|threads| traffic::peers_in_threads(threads, seconds()));
        let plain = [1, 2].map(|threads| traffic::in_threads(threads, &engine, &functions, seconds()));
        let pool = traffics.each_ref().map(|traffic| traffic.honest_alone(seconds()));
        [plain[1] / plain[0], peer[1] / peer[0], pool[1] / pool[0], pool[0] / plain[0], pool[1] / plain[1]]
    });
    figures.add("2 threads with a sandbox each ÷ 1", format!("{plain:.2}"), "≥ 1.9");
    figures.add("the same, QuickJS that isolates nothing", format!("{peer:.2}"), "(a peer)");
    figures.add("2 workers of the pool ÷ 1, generator on the same 2 processors", format!("{pool:.2}"), "≥ 1.9");
    figures.add("pool and generator ÷ plain threads: 1 worker, 2", format!("{one:.2}, {two:.2}"), "");
}

fn latencies(figures: &mut Figures) {
    let (engine, traffic) = (engine(), Traffic::new(2));
    let functions = load(&engine, HONEST);
    let [pool, plain, grown] = medians(|| {
        let plain = latency::in_this_thread(&engine, &functions, seconds());
        let alone = latency::through_the_pool(&traffic, seconds());
        let beside = latency::beside_endless(&traffic, seconds());
        [alone.spread(), plain.spread(), beside.p99 / alone.p99]
    });
    figures.add("p99 ÷ p50 of a message through the pool, unloaded", format!("{pool:.2}"), "≤ 2");
    figures.add("the same without the pool", format!("{plain:.2}"), "≤ 2");
    figures.add("p99 beside 100 endless loops of another ÷ p99 alone", format!("{grown:.2}"), "≤ 2");
}

fn engine() -> Arc<Engine> {
    Arc::new(Engine::new(&Settings::default()).unwrap())
}

fn seconds() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a bench has no settings")]
    let set = std::env::var("HOSTILE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(set.unwrap_or(0.2))
}

/// The medians of figures that are measured together.
fn medians<const N: usize>(measure: impl Fn() -> [f64; N]) -> [f64; N] {
    let rounds: Vec<[f64; N]> = (0..ROUNDS).map(|_| measure()).collect();
    std::array::from_fn(|figure| median(&mut rounds.iter().map(|round| round[figure]).collect::<Vec<_>>()))
}
