//! Functions just within their limits, and far beyond.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rquickjs::{Context, Function, Runtime as Peer};
use runtime::{Engine, FailureKind, Limits, Settings};

use crate::message::{call, check, load};
use crate::seconds;
use testing::process::resident_mib;

const BOMB: &str = "function Decoder() { var a = []; while (true) a.push(new ArrayBuffer(65536)); }";
/// Uses most of the fuel, which takes tens of milliseconds.
const LONG: &str = "function Decoder() { var n = 0; for (var i = 0; i < 350000; i++) n += i % 7; return { n: n }; }";
const BOMBS: usize = 10_000;

/// Failures of a function within its limits while four threads compete for the processors: in our sandbox, in QuickJS
/// with a wall-clock limit, and the number of runs.
pub(crate) fn false_verdicts() -> (usize, usize, usize) {
    let threads = 4 * thread::available_parallelism().unwrap().get();
    let engine = Arc::new(Engine::new(&Settings::default()).unwrap());
    let functions = load(&engine, LONG);
    let report = engine.sandbox().call(&functions, &call());
    check(&report);
    let part = report.fuel as f64 / Limits::default().fuel as f64;
    assert!((0.3..1.0).contains(&part), "the function uses {part} of its fuel");
    let each = (seconds(crate::ROUND_SECONDS).as_secs_f64() * 100.0) as usize;
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

/// Returns true if QuickJS, interrupted after 100 ms, fails to run the function.
fn peer_fails() -> bool {
    let runtime = Peer::new().unwrap();
    let end = Instant::now() + Duration::from_millis(100);
    runtime.set_interrupt_handler(Some(Box::new(move || Instant::now() > end)));
    Context::full(&runtime).unwrap().with(|ctx| {
        ctx.eval::<(), _>(LONG).is_err()
            || ctx.globals().get::<_, Function<'_>>("Decoder").unwrap().call::<_, rquickjs::Value<'_>>(()).is_err()
    })
}

/// Returns the factor by which consecutive memory bombs make the process grow.
pub(crate) fn bombs() -> f64 {
    let engine = Arc::new(Engine::new(&Settings::default()).unwrap());
    let (functions, mut sandbox) = (load(&engine, BOMB), engine.sandbox());
    let mut explode = |times| {
        for _ in 0..times {
            assert_eq!(sandbox.call(&functions, &call()).result.unwrap_err().kind, FailureKind::Memory);
        }
        resident_mib()
    };
    let before = explode(BOMBS / 100);
    explode(BOMBS) / before
}
