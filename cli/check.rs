//! Checks payload functions against examples of what they must answer, as `airlock functions check` does.
//!
//! [`read`] takes codecs from files of one JSON object per line, [`check`] runs every example of each in a sandbox of
//! its own, and the [`CodecReport`]s say what came out. It needs no server. The examples' form is told in
//! `docs/functions.md`.

mod codec;
mod compare;
mod cost;
mod input;
mod record;
mod report;
mod surrogates;
mod text;
mod totals;
mod trial;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use runtime::Engine;

pub use codec::{Codec, Example, Excluded, Expected, Input};
pub use compare::{Difference, differences};
pub use cost::Cost;
pub use input::{BadInput, read};
pub use report::{CodecReport, ExampleReport, Loaded, Mismatch, Outcome};
pub use text::Detail;
pub(crate) use text::log_line;
pub use totals::Totals;
pub(crate) use trial::{microseconds, told};

/// Checks `codecs` on `jobs` threads; the reports come in the order of the codecs.
pub fn check(engine: &Arc<Engine>, codecs: &[Codec], jobs: usize) -> Vec<CodecReport> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(codecs.len())));
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, codecs.len().max(1)) {
            scope.spawn(|| {
                let mut sandbox = engine.sandbox();
                while let Some((index, codec)) = take(&next, codecs) {
                    let report = trial::check(engine, &mut sandbox, codec);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, report));
                }
            });
        }
    });
    let mut reports = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.sort_by_key(|(index, _)| *index);
    reports.into_iter().map(|(_, report)| report).collect()
}

fn take<'a>(next: &AtomicUsize, codecs: &'a [Codec]) -> Option<(usize, &'a Codec)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    codecs.get(index).map(|codec| (index, codec))
}
