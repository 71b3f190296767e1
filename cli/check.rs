//! Checks payload functions against examples of what they must answer, as `airlock functions check` does.
//!
//! [`read`] takes codecs from files of one JSON object per line, [`check`] runs every example of each in a sandbox of
//! its own, and the [`CodecReport`]s say what came out. It needs no server. The examples' form is told in
//! `docs/functions.md`.

mod codec;
mod compare;
mod cost;
mod crew;
mod input;
mod members;
mod record;
mod report;
mod surrogates;
mod text;
mod totals;
mod trial;
mod weight;
mod words;

use std::sync::Arc;

use runtime::Engine;

pub use codec::{Codec, Example, Excluded, Expected, Input};
pub(crate) use compare::cut;
pub use compare::{Difference, differences};
pub use cost::Cost;
pub use input::{BadInput, read};
pub use report::{CodecReport, ExampleReport, Loaded, Mismatch, Outcome};
pub use text::Detail;
pub(crate) use text::log_line;
use totals::Tally;
pub use totals::Totals;
pub(crate) use trial::{microseconds, told};

/// Checks `codecs` on `jobs` threads, and tells each report as soon as it and those before it are there.
///
/// What `tell` cannot do ends it: codecs that no thread has begun are left out. Reports are not kept, only counted.
pub fn check<E>(
    engine: &Arc<Engine>,
    codecs: &[Codec],
    jobs: usize,
    mut tell: impl FnMut(&CodecReport) -> Result<(), E>,
) -> Result<Totals, E> {
    let worker = || {
        let mut sandbox = engine.sandbox();
        move |codec: &Codec| trial::check(engine, &mut sandbox, codec)
    };
    let mut tally = Tally::default();
    crew::in_order(codecs, jobs, worker, |codec, report| {
        let report = report.unwrap_or_else(|| CodecReport::of_mistake(codec));
        tell(&report)?;
        tally.add(&report);
        Ok(())
    })?;
    Ok(tally.totals())
}
