//! Runs random payloads through codecs, and reports faults: `airlock functions fuzz`.
//!
//! The same seed, codec and version of Airlock give the same report on every machine: nothing depends on time unless the
//! plan bounds it, and fuel ends what does not end by itself.

mod campaign;
mod deadline;
pub(crate) mod finding;
mod mutate;
mod random;
mod report;
mod shrink;
mod target;
mod unread;

use std::{sync::Arc, time::Duration};

use runtime::{Dialect, Engine};

pub use self::{
    finding::{FuzzFinding, FuzzReport},
    unread::Unread,
};
use crate::{codec::Codec, run::worker_pool::map_in_order};

/// Settings of a fuzz run.
#[derive(Clone, Debug)]
pub struct FuzzPlan {
    /// Chooses the payloads.
    pub seed: u64,
    /// Random messages for each codec.
    pub count: u32,
    /// Maximum length of payloads, in bytes.
    pub length_max: usize,
    /// Ports besides those of the examples.
    pub ports: Vec<u8>,
    /// The time that functions see, in milliseconds since 1970, instead of that of each example.
    pub time_ms: Option<i64>,
    /// Instead of that of each codec.
    pub dialect: Option<Dialect>,
    /// After this time, a codec has the report that there is by then.
    pub time_max: Option<Duration>,
}

/// Fuzzes `codecs` on `jobs` threads, and calls `report` for each in order, as early as possible.
///
/// An error of `report` ends the run.
pub fn fuzz<E>(
    engine: &Arc<Engine>,
    codecs: &[Codec],
    plan: &FuzzPlan,
    jobs: usize,
    mut report: impl FnMut(&Codec, FuzzReport) -> Result<(), E>,
) -> Result<(), E> {
    let worker = || {
        let mut sandbox = engine.sandbox();
        move |codec: &Codec| campaign::fuzz(engine, &mut sandbox, codec, plan)
    };
    map_in_order(codecs, jobs, worker, |codec, result| {
        let panicked = || FuzzReport {
            failure: Some("Airlock panicked; please report this bug".to_owned()),
            ..FuzzReport::new(codec, plan)
        };
        report(codec, result.unwrap_or_else(panicked))
    })
}
