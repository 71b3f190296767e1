//! What hostile functions cost others: a table with an aim beside every figure.
//!
//! Not timed by Criterion, because every figure is a ratio of two loads that take turns on the same machine. Seconds per
//! round are in `HOSTILE_SECONDS`, 1 unless set.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "shared/mod.rs"]
mod shared;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rquickjs::{Context, Function, Runtime as Peer};
use runtime::{Asker, Call, Engine, Entry, Functions, Kind, Limits, Pool, Report, Settings, Sources, Urgency};
use tokio::runtime::Runtime;

use shared::figures::{Figures, median, quantile};
use shared::process::resident_mib;

const HONEST: &str = include_str!("codecs/meter.js");
const PAYLOAD: &[u8] =
    b"\x01\x00\x09\x08\x01\x01\x08\xfa\x01\x02\x09\x01\x01\x03\x00\x00\x10\x72\x01\x04\x00\x00\x0f\x8c\x01\x05\x00\
    \x00\x11\x35\x01\x06\x00\x00\x26\x03\x01\x07\x00\x00\x23\xa0\x01\x08\xff\xff\xff\x90\x01\x15\x13\x89\x02\x00\
    \x00\x12\xd6\x87\x2f";
const ENDLESS: &str = "function Decoder() { while (true) {} }";
const BOMB: &str = "function Decoder() { var a = []; while (true) a.push(new ArrayBuffer(65536)); }";
/// Takes most of the fuel that there is, and so tens of milliseconds.
const LONG: &str = "function Decoder() { var n = 0; for (var i = 0; i < 350000; i++) n += i % 7; return { n: n }; }";

/// Rounds of which the median counts.
const ROUNDS: usize = 5;
/// Honest messages in flight, and those of endless loops: one message in ten.
const HONEST_TASKS: usize = 36;
const ENDLESS_TASKS: usize = 4;
const BOMBS: usize = 10_000;

fn main() {
    let mut figures = Figures::default();
    let share = median_of_rounds(|| Load::new(2).honest_beside_endless());
    figures.add("honest messages beside 10% endless loops ÷ what their fuel predicts", format!("{share:.2}"), "≥ 0.95");
    let scaling = median_of_rounds(|| Load::new(2).honest_alone() / Load::new(1).honest_alone());
    figures.add("2 workers ÷ 1", format!("{scaling:.2}"), "≥ 1.9");
    let (alone, beside) = latencies();
    figures.add("p99 ÷ p50 of a message, unloaded", format!("{:.2}", alone.p99 / alone.p50), "≤ 2");
    let grown = beside.p99 / alone.p99;
    figures.add("p99 beside 100 endless loops of another ÷ p99 alone", format!("{grown:.2}"), "≤ 2");
    let (ours, theirs, runs) = false_verdicts();
    figures.add("false verdicts under 4 times CPU oversubscription", format!("{ours} of {runs}"), "0");
    figures.add("the same, QuickJS with a limit of 100 ms", format!("{theirs} of {runs}"), "(a peer)");
    let growth = bombs();
    figures.add("resident memory after 10,000 memory bombs ÷ before", format!("{growth:.3}"), "≤ 1.05");
    figures.print();
}

/// A pool with functions of an honest application and of a hostile one.
struct Load {
    tokio: Runtime,
    pool: Arc<Pool>,
    honest: Functions,
    endless: Functions,
    workers: f64,
}

impl Load {
    fn new(workers: usize) -> Self {
        let settings = Settings { workers, ..Settings::default() };
        let engine = Arc::new(Engine::new(&settings).unwrap());
        let (honest, endless) = (load(&engine, HONEST), load(&engine, ENDLESS));
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { tokio, pool: Arc::new(Pool::start(engine).unwrap()), honest, endless, workers: workers as f64 }
    }

    /// Honest messages per second with nobody beside them.
    fn honest_alone(&self) -> f64 {
        self.run(HONEST_TASKS, 0).0
    }

    /// Honest messages per second beside endless loops, against what is left for them when the loops have had theirs.
    fn honest_beside_endless(&self) -> f64 {
        let alone = self.honest_alone();
        let loop_seconds = self.loop_seconds();
        let (beside, loops) = self.run(HONEST_TASKS, ENDLESS_TASKS);
        beside / (alone * (1.0 - loops * loop_seconds / self.workers))
    }

    /// What an endless loop takes when nothing disturbs it: the least of some.
    fn loop_seconds(&self) -> f64 {
        let once = || async {
            let asker = asker("hostile");
            self.pool.call(&asker, self.endless.clone(), call()).await.unwrap().elapsed.as_secs_f64()
        };
        (0..10).map(|_| self.tokio.block_on(once())).fold(f64::INFINITY, f64::min)
    }

    /// Keeps so many tasks busy for a round; messages per second of both sorts.
    fn run(&self, honest: usize, endless: usize) -> (f64, f64) {
        let done = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let end = Instant::now() + seconds();
        self.tokio.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for (count, tenant, functions, done) in
                [(honest, "honest", &self.honest, &done[0]), (endless, "hostile", &self.endless, &done[1])]
            {
                for _ in 0..count {
                    let (pool, functions, done) = (self.pool.clone(), functions.clone(), done.clone());
                    tasks.spawn(async move {
                        let asker = asker(tenant);
                        while Instant::now() < end {
                            pool.call(&asker, functions.clone(), call()).await.unwrap();
                            done.fetch_add(u64::from(Instant::now() < end), Ordering::Relaxed);
                        }
                    });
                }
            }
            tasks.join_all().await;
        });
        let per_second = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64 / seconds().as_secs_f64();
        (per_second(&done[0]), per_second(&done[1]))
    }
}

/// Seconds from asking to the answer.
struct Latency {
    p50: f64,
    p99: f64,
}

/// Of single honest messages: with nobody else, and while a hundred endless loops of another application wait.
fn latencies() -> (Latency, Latency) {
    let load = Load::new(2);
    let alone = load.latency();
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..100 {
        let (pool, endless, stop) = (load.pool.clone(), load.endless.clone(), stop.clone());
        load.tokio.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                pool.call(&asker("hostile"), endless.clone(), call()).await.unwrap();
            }
        });
    }
    let beside = load.latency();
    stop.store(true, Ordering::Relaxed);
    (alone, beside)
}

impl Load {
    fn latency(&self) -> Latency {
        let mut times = self.tokio.block_on(async {
            let (mut times, end) = (Vec::new(), Instant::now() + seconds() * 3);
            while Instant::now() < end {
                let start = Instant::now();
                check(&self.pool.call(&asker("honest"), self.honest.clone(), call()).await.unwrap());
                times.push(start.elapsed().as_secs_f64());
            }
            times
        });
        Latency { p50: median(&mut times), p99: quantile(&mut times, 0.99) }
    }
}

/// Failures of a function that is well within its limits, while four threads fight for every processor: ours, those of
/// QuickJS with a wall-clock limit, and how many runs there were of each.
fn false_verdicts() -> (usize, usize, usize) {
    let threads = 4 * thread::available_parallelism().unwrap().get();
    let engine = Arc::new(Engine::new(&Settings::default()).unwrap());
    let functions = load(&engine, LONG);
    let report = engine.sandbox().call(&functions, &call());
    check(&report);
    let part = report.fuel as f64 / Limits::default().fuel as f64;
    assert!((0.3..1.0).contains(&part), "the function uses {part} of its fuel");
    let each = (seconds().as_secs_f64() * 20.0) as usize;
    let ours = in_threads(threads, || {
        let mut sandbox = engine.sandbox();
        (0..each).filter(|_| sandbox.call(&functions, &call()).result.is_err()).count()
    });
    let theirs = in_threads(threads, || (0..each).filter(|_| peer_fails()).count());
    (ours, theirs, threads * each)
}

fn in_threads(threads: usize, work: impl Fn() -> usize + Sync) -> usize {
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Whether QuickJS, interrupted after 100 ms, fails to do the same.
fn peer_fails() -> bool {
    let runtime = Peer::new().unwrap();
    let end = Instant::now() + Duration::from_millis(100);
    runtime.set_interrupt_handler(Some(Box::new(move || Instant::now() > end)));
    Context::full(&runtime).unwrap().with(|ctx| {
        ctx.eval::<(), _>(LONG).is_err()
            || ctx.globals().get::<_, Function<'_>>("Decoder").unwrap().call::<_, rquickjs::Value<'_>>(()).is_err()
    })
}

/// How the process grows by memory bombs, one after the other.
fn bombs() -> f64 {
    let engine = Arc::new(Engine::new(&Settings::default()).unwrap());
    let (functions, mut sandbox) = (load(&engine, BOMB), engine.sandbox());
    let mut explode = |times| {
        for _ in 0..times {
            assert_eq!(sandbox.call(&functions, &call()).result.unwrap_err().kind, Kind::Memory);
        }
        resident_mib()
    };
    let before = explode(BOMBS / 100);
    explode(BOMBS) / before
}

fn load(engine: &Engine, text: &str) -> Functions {
    let sources = Sources { decoder: text.to_owned(), ..Sources::default() };
    engine.load(&sources, engine.limits()).unwrap()
}

fn asker(tenant: &str) -> Asker {
    Asker { tenant: tenant.into(), urgency: Urgency::Live }
}

fn call() -> Call {
    Call { entry: Entry::Uplink, port: 1, time_ms: 1, seed: 0, payload: PAYLOAD.to_vec(), trial: None }
}

fn check(report: &Report) {
    assert!(report.result.is_ok(), "{report:?}");
}

fn seconds() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a bench has no settings")]
    let set = std::env::var("HOSTILE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(set.unwrap_or(1.0))
}

fn median_of_rounds(measure: impl Fn() -> f64) -> f64 {
    median(&mut [(); ROUNDS].map(|()| measure()))
}
