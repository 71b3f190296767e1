//! Runs codecs on several threads and reports on them in order.

pub(crate) mod codec;
mod coverage;
pub(crate) mod fault;
pub(crate) mod update;
pub(crate) mod worker_pool;

use std::sync::Arc;

use runtime::Engine;

use self::coverage::Counter;
use crate::{
    codec::{Codec, compare::Rules},
    report::{
        CodecReport,
        totals::{Tally, Totals},
    },
};

/// Runs the examples of `codecs` on `jobs` threads, and calls `report` for each in order, as early as possible.
///
/// An error of `report` ends the run: codecs that no thread has started are skipped.
pub fn run<E>(
    engine: &Arc<Engine>,
    codecs: &[Codec],
    rules: Rules,
    jobs: usize,
    report: impl FnMut(&CodecReport) -> Result<(), E>,
) -> Result<Totals, E> {
    run_on(Engines { plain: engine, counting: None }, codecs, rules, jobs, report)
}

/// The engines of a run.
#[derive(Clone, Copy)]
pub struct Engines<'a> {
    /// Runs the examples.
    pub plain: &'a Arc<Engine>,
    /// Runs them once more if their coverage is wanted: an [`Engine::profiling`].
    pub counting: Option<&'a Arc<Engine>>,
}

/// Like [`run`], with the coverage by the examples if `engines` can count it.
pub fn run_on<E>(
    engines: Engines<'_>,
    codecs: &[Codec],
    rules: Rules,
    jobs: usize,
    report: impl FnMut(&CodecReport) -> Result<(), E>,
) -> Result<Totals, E> {
    let worker = || {
        let mut sandbox = engines.plain.sandbox();
        let mut counter = engines.counting.map(Counter::new);
        move |codec: &Codec| {
            let report = codec::run(engines.plain, &mut sandbox, codec, rules);
            CodecReport { reached: counter.as_mut().and_then(|counter| counter.reached(codec)), ..report }
        }
    };
    run_with(codecs, jobs, worker, report)
}

fn run_with<W: FnMut(&Codec) -> CodecReport, E>(
    codecs: &[Codec],
    jobs: usize,
    make_worker: impl Fn() -> W + Sync,
    mut report: impl FnMut(&CodecReport) -> Result<(), E>,
) -> Result<Totals, E> {
    let mut tally = Tally::default();
    worker_pool::map_in_order(codecs, jobs, make_worker, |codec, result| {
        let result = result.unwrap_or_else(|| CodecReport::panicked(codec));
        report(&result)?;
        tally.add(&result);
        Ok(())
    })?;
    Ok(tally.totals())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::format::text::Detail;

    fn codec(id: &str) -> Codec {
        Codec::new(id.to_owned(), String::new(), None)
    }

    #[test]
    fn a_panic_of_ours_fails_one_codec_only() {
        let codecs = ["first", "second", "third"].map(codec);
        let worker = || {
            |codec: &Codec| match codec.id.as_str() {
                "second" => panic!("injected"),
                _ => CodecReport { failure: None, ..CodecReport::unloadable(codec, String::new(), None) },
            }
        };
        let mut text = String::new();
        let totals = run_with(&codecs, 2, worker, |report| {
            text += &report.text(Detail::Normal);
            Ok::<(), ()>(())
        });
        let failure = "Airlock panicked; please report this bug";
        assert_eq!(text, format!("ok    first\nFAIL  second\n      {failure}\nok    third\n"));
        assert_eq!(totals, Ok(Totals { codecs: 3, codecs_failed: 1, codecs_not_loaded: 1, ..Totals::default() }));
    }
}
