//! Checks codecs against examples of what their functions return, for `airlock functions check` and for programs.
//!
//! [`read`] takes codecs from files with one JSON object per line. [`check`] runs each example in a fresh sandbox and
//! reports a [`CodecReport`] per codec. It needs no server. `docs/functions.md` documents the format.

mod codec;
mod compare;
mod cost;
mod jsonl;
mod memory_size;
mod reader;
mod report;
mod run;
mod surrogates;
mod text;
mod totals;
mod unknown_members;
mod worker_pool;

use std::sync::Arc;

use runtime::Engine;

pub use codec::{Codec, Example, Excluded, Expected, Input};
pub(crate) use compare::truncate;
pub use compare::{Difference, differences};
pub use cost::Cost;
pub use reader::{BadInput, read};
pub use report::{CodecReport, ExampleReport, Loaded, Mismatch, Outcome};
pub(crate) use run::{describe, microseconds};
pub use text::Detail;
pub(crate) use text::log_line;
use totals::Tally;
pub use totals::Totals;

/// Checks `codecs` on `jobs` threads, and calls `report` for each in order, as early as possible.
///
/// An error of `report` ends the check: codecs that no thread has started are skipped.
pub fn check<E>(
    engine: &Arc<Engine>,
    codecs: &[Codec],
    jobs: usize,
    report: impl FnMut(&CodecReport) -> Result<(), E>,
) -> Result<Totals, E> {
    let worker = || {
        let mut sandbox = engine.sandbox();
        move |codec: &Codec| run::check(engine, &mut sandbox, codec)
    };
    check_with(codecs, jobs, worker, report)
}

fn check_with<W: FnMut(&Codec) -> CodecReport, E>(
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
    use std::collections::BTreeSet;

    use super::*;

    fn codec(id: &str) -> Codec {
        let (script, unknown_members) = (String::new(), BTreeSet::new());
        Codec { id: id.to_owned(), script, dialect: None, examples: Vec::new(), unknown_members }
    }

    #[test]
    fn a_panic_of_the_checker_fails_one_codec_only() {
        let codecs = ["first", "second", "third"].map(codec);
        let worker = || {
            |codec: &Codec| match codec.id.as_str() {
                "second" => panic!("injected"),
                id => CodecReport { id: id.to_owned(), loaded: None, failure: None, cost: None, examples: Vec::new() },
            }
        };
        let mut text = String::new();
        let totals = check_with(&codecs, 2, worker, |report| {
            text += &report.text(Detail::Normal);
            Ok::<(), ()>(())
        });
        let failure = "the checker panicked; please report this bug";
        assert_eq!(text, format!("ok    first\nFAIL  second\n      {failure}\nok    third\n"));
        assert_eq!(totals, Ok(Totals { codecs: 3, codecs_failed: 1, ..Totals::default() }));
    }
}
