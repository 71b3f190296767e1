//! The cost of a payload function in a fresh sandbox, compared with QuickJS alone.
//!
//! `fresh` is our sandbox, including memory reset, input and output conversion, metering and all limits. `runtime` is
//! native QuickJS with a new runtime and source evaluation per message, as other servers do it. `warm` is native
//! QuickJS with one context for all messages: it isolates nothing and is the lower bound.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Function, Runtime, Value};
use runtime::{Call, CallOutcome, Engine, EntryPoint, Functions, Reset, Sandbox, Settings, Sources};

/// A codec and a typical message.
struct Case {
    name: &'static str,
    text: &'static str,
    port: u8,
    payload: &'static [u8],
}

const CASES: [Case; 3] = [
    Case {
        name: "tiny 0.5 KiB",
        text: include_str!("codecs/tiny.js"),
        port: 1,
        payload: &[1, 0, 235, 2, 120, 3, 12, 228],
    },
    Case {
        name: "climate 8 KiB",
        text: include_str!("codecs/climate.js"),
        port: 85,
        payload: b"\x01\x75\x5c\x03\x67\xe1\x00\x04\x68\x65\x05\x00\x01\x06\xcb\x02\x07\x7d\x67\x04\x08\x7d\x20\x01\x09\x73\x68\x27",
    },
    Case {
        name: "meter 38 KiB",
        text: include_str!("codecs/meter.js"),
        port: 1,
        payload: include_bytes!("codecs/meter.bin"),
    },
];

impl Case {
    fn sources(&self) -> Sources {
        Sources { decoder: self.text.into(), ..Sources::default() }
    }

    fn call(&self) -> Call {
        Call {
            entry_point: EntryPoint::Uplink,
            port: self.port,
            time_ms: 1_763_700_000_000,
            seed: 1,
            payload: self.payload.to_vec(),
            extra: String::new(),
            single_function: None,
        }
    }
}

/// Returns an engine, a function set and a sandbox that has run it before.
fn fresh(reset: Option<Reset>, sources: &Sources) -> (Arc<Engine>, Functions, Sandbox) {
    let settings = Settings::default();
    let engine = match reset {
        Some(reset) => Engine::with_reset(&settings, reset),
        None => Engine::new(&settings),
    };
    let engine = Arc::new(engine.unwrap());
    let functions = engine.load(sources, engine.limits()).unwrap();
    let sandbox = engine.sandbox();
    (engine, functions, sandbox)
}

fn check(report: &CallOutcome) {
    assert!(report.result.is_ok(), "{report:?}");
}

fn evaluate(ctx: &Ctx<'_>, text: &str) {
    let mut options = EvalOptions::default();
    options.strict = false;
    ctx.eval_with_options::<(), _>(text, options).unwrap();
}

fn decode(ctx: &Ctx<'_>, case: &Case) -> String {
    let decoder: Function<'_> = ctx.globals().get("Decoder").unwrap();
    let fields: Value<'_> = decoder.call((case.payload.to_vec(), case.port)).unwrap();
    ctx.json_stringify(fields).unwrap().unwrap().to_string().unwrap()
}

/// The same decoder and message in three ways.
fn messages(criterion: &mut Criterion) {
    for case in &CASES {
        let mut group = criterion.benchmark_group(case.name);
        let (_, functions, mut sandbox) = fresh(None, &case.sources());
        let call = case.call();
        check(&sandbox.call(&functions, &call));
        group.bench_function("fresh", |bencher| bencher.iter(|| sandbox.call(&functions, &call)));
        group.bench_function("runtime", |bencher| {
            bencher.iter(|| {
                let context = Context::full(&Runtime::new().unwrap()).unwrap();
                context.with(|ctx| {
                    evaluate(&ctx, case.text);
                    decode(&ctx, case)
                })
            });
        });
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| {
            evaluate(&ctx, case.text);
            group.bench_function("warm", |bencher| bencher.iter(|| decode(&ctx, black_box(case))));
        });
        group.finish();
    }
}

/// The overhead of a message without any function, for each reset method.
fn overhead(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("overhead");
    for reset in [Reset::PageScan, Reset::Remap, Reset::Copy] {
        for (what, sources) in [("nothing", Sources::default()), (CASES[0].name, CASES[0].sources())] {
            let (_, functions, mut sandbox) = fresh(Some(reset), &sources);
            let call = CASES[0].call();
            check(&sandbox.call(&functions, &call));
            let id = BenchmarkId::new(reset.name(), what);
            group.bench_function(id, |bencher| bencher.iter(|| sandbox.call(&functions, &call)));
        }
    }
    group.finish();
}

/// The cost of loading functions, and of the first message on a worker.
fn loads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    for case in &CASES {
        let (engine, functions, _) = fresh(None, &case.sources());
        let (sources, call) = (case.sources(), case.call());
        group.bench_function(BenchmarkId::new("load", case.name), |bencher| {
            bencher.iter(|| engine.load(&sources, engine.limits()));
        });
        group.bench_function(BenchmarkId::new("first message", case.name), |bencher| {
            bencher.iter(|| engine.sandbox().call(&functions, &call));
        });
    }
    group.finish();
}

fn config() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3))
}

criterion_group! {
    name = benches;
    config = config();
    targets = messages, overhead, loads
}
criterion_main!(benches);
