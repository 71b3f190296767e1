//! The cost of a message in a fresh sandbox, per codec, compared with other ways to run the codec.
//!
//! | variant | meaning |
//! |---|---|
//! | fresh | our sandbox with a hot application and everything enabled |
//! | guest | the part of that spent inside the sandbox |
//! | three | our sandbox with a converter and a validator |
//! | unmetered | our sandbox with the guest in `AIRLOCK_GUEST`, built by `runtime/guest/build.sh --unmetered FILE` |
//! | warm | native QuickJS with one context for all messages, without isolation |
//! | runtime | native QuickJS with a new runtime and source evaluation per message |
//! | buffer | the same, also evaluating the `Buffer` polyfill in `AIRLOCK_POLYFILL` |
//! | jitless | V8 without JIT (`node --jitless`) with one context for all messages, without isolation |
//! | v8 | the same with JIT |
//! | node | Node's `vm` with a new context and a time limit per message |
//! | goja | goja with one runtime for all messages: the program that `AIRLOCK_GOJA` names |
//! | goja-new | goja with a new runtime per message, in which a compiled script runs |
//! | otto, otto-new | the same two with otto: the program that `AIRLOCK_OTTO` names |
//! | counted | our sandbox that counts steps, as for `functions profile` and coverage |
//! | bench | what `functions bench` reports for the same messages |
//!
//! The codecs are the records in `AIRLOCK_CORPUS`, or our own. `AIRLOCK_WAYS=fresh,warm` selects variants,
//! `AIRLOCK_ROUNDS` sets the number of rounds, `AIRLOCK_TSV` names an output file with the figures of each codec. The
//! programs for goja and otto are built in `benches/peers/go` by `go mod tidy && go build -o DIR/ ./goja ./otto`. A
//! codec that fails in another engine, or that gives other results there than in our sandbox, is counted and not
//! timed.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "benches are configured by environment variables")]

mod codecs;
mod native;
mod ours;
mod peers;
#[path = "../shared/codecs.rs"]
mod records;
mod rounds;
mod table;

use std::{env, fs};

use codecs::Codec;
use native::Warm;
use ours::{Counted, Engines, Ours};
use peers::Peer;
use rounds::{Timing, Way};
use serde_json::Value;
use table::{Goal, Table};

const COLUMNS: [&str; 16] = [
    "fresh",
    "guest",
    "three",
    "unmetered",
    "warm",
    "jitless",
    "v8",
    "runtime",
    "buffer",
    "node",
    "goja",
    "goja-new",
    "otto",
    "otto-new",
    "counted",
    "bench",
];

const GOALS: [Goal; 11] = [
    Goal { what: "fresh sandbox ÷ warm native call", over: "fresh", under: "warm", goal: "≤ 1.3, ≤ 1.2" },
    Goal { what: "fresh sandbox ÷ warm V8 without JIT", over: "fresh", under: "jitless", goal: "≤ 1.5" },
    Goal { what: "fresh sandbox ÷ warm V8 with JIT", over: "fresh", under: "v8", goal: "none" },
    Goal { what: "new native runtime and source ÷ ours", over: "runtime", under: "fresh", goal: "≥ 36, ≥ 36" },
    Goal { what: "the same with a polyfill ÷ ours", over: "buffer", under: "fresh", goal: "≥ 400, ≥ 270" },
    Goal { what: "Node's vm ÷ ours", over: "node", under: "fresh", goal: "≥ 25" },
    Goal { what: "metering: with ÷ without", over: "fresh", under: "unmetered", goal: "≤ 1.10" },
    Goal { what: "inside the sandbox ÷ whole", over: "guest", under: "fresh", goal: "≥ 0.75" },
    Goal { what: "three functions ÷ decoder alone", over: "three", under: "fresh", goal: "≤ 1.5" },
    Goal { what: "counting steps ÷ plain call", over: "counted", under: "fresh", goal: "≤ 20" },
    Goal { what: "`functions bench` ÷ this bench", over: "bench", under: "fresh", goal: "0.95 to 1.05" },
];

/// The variants to measure, and how often.
struct Plan {
    columns: Vec<&'static str>,
    rounds: usize,
    polyfill: Option<String>,
}

impl Plan {
    fn read() -> Self {
        let ways = env::var("AIRLOCK_WAYS").ok();
        let polyfill = env::var("AIRLOCK_POLYFILL").ok().map(|path| fs::read_to_string(path).unwrap());
        let chosen = |column: &&str| ways.as_ref().is_none_or(|ways| ways.split(',').any(|way| way == *column));
        Self {
            columns: COLUMNS.into_iter().filter(chosen).collect(),
            rounds: env::var("AIRLOCK_ROUNDS").map_or(15, |rounds| rounds.parse().unwrap()),
            polyfill,
        }
    }

    fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }
}

/// Measures one codec, in the order of the plan's columns.
fn measure(plan: &Plan, engines: &Engines, peers: &mut [Peer], codec: &Codec) -> Vec<Option<Timing>> {
    let warm = Warm::new(codec).unwrap();
    let mut fresh = Ours::new(&engines.usual, &codec.sources()).unwrap();
    let mut three = Ours::new(&engines.usual, &codec.three_sources());
    let mut unmetered = engines.unmetered.as_ref().and_then(|engine| Ours::new(engine, &codec.sources()));
    let mut counted = Counted::new(&engines.counting, &codec.sources());
    let (many, few) = (plan.rounds, plan.rounds.div_ceil(3));
    let mut ways: Vec<(&str, (usize, Way<'_>))> = vec![
        ("fresh", (many, Box::new(|times| fresh.run(codec, times)))),
        ("warm", (many, Box::new(|times| warm.run(codec, times)))),
        ("runtime", (few, Box::new(|times| again(codec, "", times)))),
    ];
    if let Some(ours) = &mut three {
        ways.push(("three", (many, Box::new(|times| ours.run(codec, times)))));
    }
    if let Some(ours) = &mut unmetered {
        ways.push(("unmetered", (many, Box::new(|times| ours.run(codec, times)))));
    }
    if let Some(counted) = &mut counted {
        ways.push(("counted", (few, Box::new(|times| counted.run(codec, times)))));
    }
    if let Some(polyfill) = &plan.polyfill {
        ways.push(("buffer", (few, Box::new(|times| again(codec, polyfill, times)))));
    }
    ways.retain(|(name, _)| plan.has(name));
    let (names, mut ways): (Vec<_>, Vec<_>) = ways.into_iter().unzip();
    let timings = rounds::measure(&mut ways, codec.messages.len());
    drop(ways);
    let mut timings: Vec<(&str, Timing)> = names.into_iter().zip(timings).collect();
    if plan.has("guest") {
        let share = fresh.guest_share(codec);
        let whole = timings.iter().find(|(name, _)| *name == "fresh").map(|(_, timing)| *timing);
        timings.extend(whole.map(|whole| ("guest", Timing { best: whole.best * share, median: whole.median * share })));
    }
    if plan.has("bench") {
        timings.push(("bench", engines.bench(codec)));
    }
    let expected = results(&mut fresh, codec);
    timings.extend(peers.iter_mut().filter_map(|peer| Some((peer.column, peer.time(codec, many, &expected)?))));
    let timing = |column: &&str| timings.iter().find(|(name, _)| name == column).map(|(_, timing)| *timing);
    plan.columns.iter().map(timing).collect()
}

/// The fields of each message in our sandbox.
fn results(fresh: &mut Ours, codec: &Codec) -> Vec<Value> {
    codec.messages.iter().map(|message| serde_json::from_str(&fresh.json(message).unwrap()).unwrap()).collect()
}

/// Runs each message in a new runtime.
fn again(codec: &Codec, before: &str, times: u32) {
    for _ in 0..times {
        codec.messages.iter().for_each(|message| native::fresh(codec, before, message));
    }
}

/// Keeps the messages that work in both engines.
fn usable(engines: &Engines, mut codec: Codec) -> Option<Codec> {
    let warm = Warm::new(&codec)?;
    let mut ours = Ours::new(&engines.usual, &codec.sources())?;
    let mut messages = std::mem::take(&mut codec.messages);
    if let Some(mut other) = engines.unmetered.as_ref().and_then(|engine| Ours::new(engine, &codec.sources())) {
        let differs = messages.iter().find(|message| ours.json(message) != other.json(message));
        assert!(differs.is_none(), "the guests do not agree on {}", codec.id);
    }
    messages.retain(|message| ours.json(message).is_some() && warm.works(&codec, message));
    (!messages.is_empty()).then_some(Codec { messages, ..codec })
}

fn main() {
    let plan = Plan::read();
    let engines = Engines::new();
    let mut peers = Peer::start(&plan.columns);
    let all = codecs::read();
    let known = all.len();
    let usable: Vec<Codec> = all.into_iter().filter_map(|codec| usable(&engines, codec)).collect();
    println!("{} of {known} codecs work in both engines", usable.len());
    let row = |codec: &Codec| (codec.id.clone(), measure(&plan, &engines, &mut peers, codec));
    let rows = usable.iter().map(row).collect();
    let table = Table { columns: plan.columns, rows };
    table.print(&GOALS);
    Peer::report(&peers);
    if let Some(path) = env::var_os("AIRLOCK_TSV") {
        fs::write(path, table.tsv()).unwrap();
    }
}
