//! Thousands of applications that take turns.

use std::sync::Arc;
use std::time::Instant;

use handler::application::Application;
use handler::payload::{Payload, Payloads, Run, Validity};
use handler::{Loading, Settings as HandlerSettings};
use runtime::{Engine, Functions, Pool, Priority, Sandbox, Settings, Sources};
use server::usage::Usage;
use types::Timestamp;

use crate::codecs::Codec;
use crate::engine;
use crate::one::check;
use testing::figures::{Figures, mean, median, microseconds, quantile};
use testing::process::{faults, resident_mib};

/// Applications that are hot on a worker.
const HOT: usize = 32;
/// Messages in flight.
const ROUND: usize = 64;

/// Measures only the cost of changing function sets, without queues and threads.
pub(crate) fn on_one_thread(figures: &mut Figures, codecs: &[Codec], count: usize) {
    let hot = hot_times(codecs);
    let engine = engine(0);
    let start = Instant::now();
    let functions: Vec<Functions> = (0..count)
        .map(|number| engine.load(&codecs[number % codecs.len()].sources(number), engine.limits()).unwrap())
        .collect();
    let each = microseconds(start.elapsed()) / count as f64;
    figures.add("loading: mean", format!("{:.2} ms", each / 1000.0), "");
    let mut sandbox = engine.sandbox();
    turns(&mut sandbox, codecs, &functions[..1000]);
    let faults_before = faults();
    let mut times = turns(&mut sandbox, codecs, &functions);
    let each = (faults() - faults_before) / count as f64;
    figures.add("page faults of each such message", format!("{each:.1}"), "");
    // Use the median per codec and the mean over codecs, as for the hot ones, to reduce noise.
    let of_codec = |codec| times.iter().copied().skip(codec).step_by(codecs.len()).collect::<Vec<f64>>();
    let cold = mean(&(0..codecs.len()).map(|codec| median(&mut of_codec(codec))).collect::<Vec<f64>>());
    let measured = format!("{:.1}, {cold:.1}, {:.1} µs", median(&mut times), quantile(&mut times, 0.99));
    figures.add("message of an application that is not hot, after all others: median, mean, 99%", measured, "≤ 60 µs");
    let measured = format!("{:.2}, {hot:.1} against {cold:.1} µs", hot / cold);
    figures.add("throughput of applications that take turns ÷ hot, one thread", measured, "≥ 0.5");
    let in_turn = hot_in_turn(codecs);
    let measured = format!("{:.2}, {in_turn:.1} against {cold:.1} µs", in_turn / cold);
    figures.add("the same ÷ every codec hot in a memory of its own, in turn", measured, "");
}

/// µs per message when each codec is hot, averaged over all codecs.
fn hot_times(codecs: &[Codec]) -> f64 {
    let engine = engine(1);
    let best = codecs.iter().map(|codec| {
        let functions = engine.load(&codec.sources(0), engine.limits()).unwrap();
        let mut sandbox = engine.sandbox();
        let mut times: Vec<f64> =
            (0..100).map(|_| microseconds(sandbox.call(&functions, &codec.call).elapsed)).collect();
        median(&mut times[20..])
    });
    mean(&best.collect::<Vec<f64>>())
}

/// µs per message when all codecs are hot and take turns, averaged over all codecs. This includes what the processor's
/// caches lose between two messages of a codec.
fn hot_in_turn(codecs: &[Codec]) -> f64 {
    let engine = engine(codecs.len());
    let load = |codec: &Codec| engine.load(&codec.sources(0), engine.limits()).unwrap();
    let functions: Vec<Functions> = codecs.iter().map(load).collect();
    let mut sandbox = engine.sandbox();
    (0..3).for_each(|_| drop(turns(&mut sandbox, codecs, &functions)));
    let rounds: Vec<Vec<f64>> = (0..20).map(|_| turns(&mut sandbox, codecs, &functions)).collect();
    let of_codec = |codec: usize| rounds.iter().map(|round| round[codec]).collect::<Vec<f64>>();
    mean(&(0..codecs.len()).map(|codec| median(&mut of_codec(codec))).collect::<Vec<f64>>())
}

fn turns(sandbox: &mut Sandbox, codecs: &[Codec], functions: &[Functions]) -> Vec<f64> {
    let calls = functions.iter().zip(codecs.iter().cycle());
    calls
        .map(|(functions, codec)| {
            let report = sandbox.call(functions, &codec.call);
            check(&report);
            microseconds(report.elapsed)
        })
        .collect()
}

/// Measures through the handler: queues, workers, and the configured memory for loaded functions.
pub(crate) fn in_the_handler(figures: &mut Figures, codecs: &[Codec], all: usize) {
    let applications: Vec<(Application, Payload)> =
        (0..all).map(|number| application(&codecs[number % codecs.len()], number)).collect();
    let applications = Arc::new(applications);
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut hot = 0.0;
    for (what, bytes_max, count) in [
        ("hot", 1 << 30, HOT),
        ("all in turn", 1 << 30, all),
        ("all in turn, in a sixteenth of the memory", 64 << 20, all),
    ] {
        let before = resident_mib();
        let settings = Settings { cache_dir: Some(dir.path().into()), ..Settings::default() };
        let loading = Loading { bytes_max, ..Loading::default() };
        let pool = Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap();
        let handler = HandlerSettings { loading, ..HandlerSettings::default() };
        let payloads = Arc::new(Payloads::new(pool, &handler).unwrap());
        // Once for loading, and once to warm up workers and allocator.
        for _ in 0..2 {
            tokio.block_on(serve(&payloads, &applications, 0..count));
        }
        let messages = all.max(count);
        let start = Instant::now();
        tokio.block_on(serve(&payloads, &applications, (0..messages).map(|number| number % count)));
        let each = microseconds(start.elapsed()) / messages as f64;
        let grown = resident_mib() - before;
        hot = if count == HOT { each } else { hot };
        let measured = format!("{each:.1} µs, {:.2} of hot, {grown:.0} MiB of {}", hot / each, bytes_max >> 20);
        figures.add(
            &format!("handler, {what}: per message, throughput, resident memory of the bound"),
            measured,
            "≥ 0.5",
        );
    }
}

fn application(codec: &Codec, number: usize) -> (Application, Payload) {
    let sources = Sources { decoder: codec.text(number), ..Sources::default() };
    let app_id = format!("application-{number}").parse().unwrap();
    let application = Application::with_functions(app_id, "custom".to_owned(), sources);
    let port = u32::from(codec.call.port);
    let bytes = Some(codec.call.payload.clone());
    (application, Payload::without_device(bytes, port, Timestamp::from_millis(1)).unwrap())
}

async fn serve(
    payloads: &Arc<Payloads>,
    applications: &Arc<Vec<(Application, Payload)>>,
    numbers: impl Iterator<Item = usize>,
) {
    let mut round = tokio::task::JoinSet::new();
    for number in numbers {
        if round.len() >= ROUND {
            round.join_next().await.unwrap().unwrap();
        }
        let (payloads, applications) = (payloads.clone(), applications.clone());
        round.spawn(async move {
            let (application, payload) = &applications[number];
            let run = Run { priority: Priority::Live, usage: &Usage::default() };
            let decoded = payloads.decode(application, payload, run).await.unwrap();
            assert!(decoded.validity != Validity::NotConverted, "{decoded:?}");
        });
    }
    round.join_all().await;
}
