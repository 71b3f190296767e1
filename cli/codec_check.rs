//! Checks payload functions against examples of what they must answer, as `airlock functions check` does.
//!
//! [`read`] takes codecs from files of one JSON object per line, [`check`] runs every example of each in a sandbox of
//! its own, and the [`CodecReport`]s say what came out. It needs no server. The examples' form is told in
//! `docs/functions.md`.

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
mod words;
mod worker_pool;

use std::sync::Arc;

use runtime::Engine;

pub use codec::{Codec, Example, Excluded, Expected, Input};
pub(crate) use compare::cut;
pub use compare::{Difference, differences};
pub use cost::Cost;
pub use reader::{BadInput, read};
pub use report::{CodecReport, ExampleReport, Loaded, Mismatch, Outcome};
pub(crate) use run::{microseconds, told};
pub use text::Detail;
pub(crate) use text::log_line;
use totals::Tally;
pub use totals::Totals;

/// Checks `codecs` on `jobs` threads, and tells each report as soon as it and those before it are there.
///
/// What `tell` cannot do ends it: codecs that no thread has begun are left out. Reports are not kept, only counted.
pub fn check<E>(
    engine: &Arc<Engine>,
    codecs: &[Codec],
    jobs: usize,
    tell: impl FnMut(&CodecReport) -> Result<(), E>,
) -> Result<Totals, E> {
    let worker = || {
        let mut sandbox = engine.sandbox();
        move |codec: &Codec| run::check(engine, &mut sandbox, codec)
    };
    counted(codecs, jobs, worker, tell)
}

fn counted<W: FnMut(&Codec) -> CodecReport, E>(
    codecs: &[Codec],
    jobs: usize,
    make_worker: impl Fn() -> W + Sync,
    mut tell: impl FnMut(&CodecReport) -> Result<(), E>,
) -> Result<Totals, E> {
    let mut tally = Tally::default();
    worker_pool::in_order(codecs, jobs, make_worker, |codec, report| {
        let report = report.unwrap_or_else(|| CodecReport::of_mistake(codec));
        tell(&report)?;
        tally.add(&report);
        Ok(())
    })?;
    Ok(tally.totals())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn codec(id: &str) -> Codec {
        Codec { id: id.to_owned(), script: String::new(), dialect: None, examples: Vec::new(), others: BTreeSet::new() }
    }

    #[test]
    fn a_mistake_of_the_host_fails_the_codec_that_met_it_and_no_other() {
        let codecs = ["first", "second", "third"].map(codec);
        let worker = || {
            |codec: &Codec| match codec.id.as_str() {
                "second" => panic!("injected"),
                id => CodecReport { id: id.to_owned(), loaded: None, failure: None, cost: None, examples: Vec::new() },
            }
        };
        let mut told = String::new();
        let totals = counted(&codecs, 2, worker, |report| {
            told += &report.text(Detail::Normal);
            Ok::<(), ()>(())
        });
        let mistake = "the host made a mistake, please report this";
        assert_eq!(told, format!("ok    first\nFAIL  second\n      {mistake}\nok    third\n"));
        assert_eq!(totals, Ok(Totals { codecs: 3, codecs_failed: 1, ..Totals::default() }));
    }
}
