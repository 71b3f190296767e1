//! Runs codecs on several threads and reports on them in order.

pub(crate) mod codec;
pub(crate) mod worker_pool;

use std::sync::Arc;

use runtime::Engine;

use crate::{
    codec::Codec,
    compare::Rules,
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
    let worker = || {
        let mut sandbox = engine.sandbox();
        move |codec: &Codec| codec::run(engine, &mut sandbox, codec, rules)
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
    use crate::report::text::Detail;

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
