//! The cost of one application.

use std::time::Instant;

use runtime::{CallOutcome, Engine, Settings};

use crate::codecs::Codec;
use crate::engine;
use testing::figures::{Figures, mean, median, microseconds, quantile};

pub(crate) fn check(report: &CallOutcome) {
    assert!(report.result.is_ok(), "{report:?}");
}

/// The codecs that return a result, so that only whole messages are timed.
pub(crate) fn usable(codecs: Vec<Codec>) -> Vec<Codec> {
    let engine = engine(1);
    let gives = |codec: &Codec| {
        let functions = engine.load(&codec.sources(0), engine.limits());
        functions.is_ok_and(|functions| engine.sandbox().call(&functions, &codec.call).result.is_ok())
    };
    codecs.into_iter().filter(gives).collect()
}

/// Memory of an idle application.
pub(crate) fn idle(figures: &mut Figures, codecs: &[Codec]) {
    let engine = engine(1);
    let kept = |codec: &Codec| engine.load(&codec.sources(0), engine.limits()).unwrap().idle_bytes() as f64 / 1000.0;
    let mut kept: Vec<f64> = codecs.iter().map(kept).collect();
    let measured = format!(
        "{:.0}, {:.0}, {:.0}, {:.0} kB",
        median(&mut kept),
        mean(&kept),
        quantile(&mut kept, 0.95),
        quantile(&mut kept, 1.0)
    );
    figures.add("memory of an idle application: median, mean, 95%, most", measured, "median ≤ 100 kB");
}

/// From the source to the end of the first message, and loading from disk.
pub(crate) fn saving(figures: &mut Figures, codecs: &[Codec]) {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { cache_dir: Some(dir.path().into()), ..Settings::default() };
    let engine = std::sync::Arc::new(Engine::new(&settings).unwrap());
    let mut sandbox = engine.sandbox();
    for (what, goal) in [("saving functions until they have run", "≤ 5 ms"), ("the same, read back from the disk", "")]
    {
        let mut times = Vec::new();
        for codec in codecs {
            let start = Instant::now();
            let functions = engine.load(&codec.sources(0), engine.limits()).unwrap();
            check(&sandbox.call(&functions, &codec.call));
            times.push(microseconds(start.elapsed()) / 1000.0);
        }
        let measured = format!(
            "{:.2}, {:.2}, {:.2} ms",
            median(&mut times),
            quantile(&mut times, 0.95),
            quantile(&mut times, 1.0)
        );
        figures.add(&format!("{what}: median, 95%, most"), measured, goal);
    }
}

/// Measures the variation of a message's time.
pub(crate) fn spread(figures: &mut Figures, codecs: &[Codec]) {
    let engine = engine(1);
    let mut ratios: Vec<f64> = codecs
        .iter()
        .map(|codec| {
            let functions = engine.load(&codec.sources(0), engine.limits()).unwrap();
            let mut sandbox = engine.sandbox();
            let mut times: Vec<f64> =
                (0..500).map(|_| microseconds(sandbox.call(&functions, &codec.call).elapsed)).collect();
            let times = &mut times[20..];
            quantile(times, 0.99) / median(times)
        })
        .collect();
    let measured = format!("{:.2}, {:.2}", median(&mut ratios), quantile(&mut ratios, 0.9));
    figures.add("99% ÷ 50% of a hot application's messages: median of codecs, 90%", measured, "≤ 2");
}
