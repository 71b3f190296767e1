//! Cost of hostile functions and callers for others, and the overhead of the worker pool, with a goal for every figure.
//!
//! Criterion cannot measure these: the figures of functions are ratios of loads that take turns on the same machine,
//! and the median of several rounds, each of `HOSTILE_SECONDS`, by default 0.2. An attack takes `HOSTILE_SECONDS`, by
//! default 10, on an `airlock serve` process of its own with the default settings, but without the hourly limits of
//! calls. `AIRLOCK_BINARY` names another binary than the one built with this bench; with `HOSTILE_CORES=1` the server
//! has the first processor and the bench the second. Arguments choose what is run: `functions`, `attacks`, parts of the
//! names of attacks, and numbers of rows, such as `4`; by default, all. Row 1 needs root for its small disk, and row 8
//! for a resolver of its own.
//!
//! Rows are those of the issue that lists the attacks. Rows 5, 12 and 18 are not loads: who may set a webhook, a clock
//! that jumps, and how many events an uplink makes. Tests of outputs and of the whole product have them.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod attack;
mod attacks;
mod http2;
mod latency;
mod limits;
mod machine;
mod message;
mod mqtt;
mod neighbour;
mod requests;
mod resources;
#[path = "../uplink_http/server_process.rs"]
mod server_process;
mod table;
mod traffic;

use std::{sync::Arc, time::Duration};

use runtime::{Engine, Settings};

use attack::Attack;
use message::{HONEST, load};
use table::Row;
use testing::figures::{Figures, median};
use traffic::Traffic;

/// Number of rounds, of which the median counts.
const ROUNDS: usize = 15;
/// Time of a round by default, in seconds.
const ROUND_SECONDS: f64 = 0.2;
/// Time of an attack by default, in seconds.
const ATTACK_SECONDS: f64 = 10.0;

fn main() {
    // Cargo adds an option.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|part| name == part);
    let mut figures = Figures::default();
    if is_chosen("functions") {
        functions(&mut figures);
        figures.print();
    }
    machine::prepare();
    ::server::system::install_crypto();
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let is_attack_chosen = |attack: &&Attack| {
        let is_part = |part: &String| part.parse::<u8>().is_err() && attack.name.contains(part.as_str());
        is_chosen("attacks") || is_chosen(&attack.row.to_string()) || chosen.iter().any(is_part)
    };
    let attacks = attacks::ALL.into_iter().filter(is_attack_chosen);
    let rows: Vec<Row> = attacks.map(|attack| tokio.block_on(attack.run(seconds(ATTACK_SECONDS)))).collect();
    table::print(&rows);
}

fn functions(figures: &mut Figures) {
    beside_endless(figures);
    scaling(figures);
    latencies(figures);
    let (ours, theirs, runs) = limits::false_verdicts();
    figures.add("false verdicts under 4 times CPU oversubscription", format!("{ours} of {runs}"), "0");
    figures.add("the same, QuickJS with a limit of 100 ms", format!("{theirs} of {runs}"), "(a peer)");
    let growth = limits::bombs();
    figures.add("resident memory after 10,000 memory bombs ÷ before", format!("{growth:.3}"), "≤ 1.05");
}

fn beside_endless(figures: &mut Figures) {
    let traffic = Traffic::new(2);
    let [share] = medians(|| [traffic.honest_beside_endless(seconds(ROUND_SECONDS))]);
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
        let peer = [1, 2].map(|threads| traffic::peers_in_threads(threads, seconds(ROUND_SECONDS)));
        let plain = [1, 2].map(|threads| traffic::in_threads(threads, &engine, &functions, seconds(ROUND_SECONDS)));
        let pool = traffics.each_ref().map(|traffic| traffic.honest_alone(seconds(ROUND_SECONDS)));
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
        let plain = latency::in_this_thread(&engine, &functions, seconds(ROUND_SECONDS));
        let alone = latency::through_the_pool(&traffic, seconds(ROUND_SECONDS));
        let beside = latency::beside_endless(&traffic, seconds(ROUND_SECONDS));
        [alone.spread(), plain.spread(), beside.p99 / alone.p99]
    });
    figures.add("p99 ÷ p50 of a message through the pool, unloaded", format!("{pool:.2}"), "≤ 2");
    figures.add("the same without the pool", format!("{plain:.2}"), "≤ 2");
    figures.add("p99 beside 100 endless loops of another ÷ p99 alone", format!("{grown:.2}"), "≤ 2");
}

fn engine() -> Arc<Engine> {
    Arc::new(Engine::new(&Settings::default()).unwrap())
}

fn seconds(default: f64) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a bench has no settings")]
    let set = std::env::var("HOSTILE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(set.unwrap_or(default))
}

/// The medians of figures that are measured together.
fn medians<const N: usize>(measure: impl Fn() -> [f64; N]) -> [f64; N] {
    let rounds: Vec<[f64; N]> = (0..ROUNDS).map(|_| measure()).collect();
    std::array::from_fn(|figure| median(&mut rounds.iter().map(|round| round[figure]).collect::<Vec<_>>()))
}
