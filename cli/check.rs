//! Checks payload functions against examples of what they must answer, as `airlock functions check` does.
//!
//! [`read`] takes codecs from files of one JSON object per line, [`check`] runs every example of each in a sandbox of
//! its own, and the [`CodecReport`]s say what came out. It needs no server. The examples' form is told in
//! `docs/functions.md`.

mod codec;
mod compare;
mod cost;
mod input;
mod members;
mod record;
mod report;
mod surrogates;
mod text;
mod totals;
mod trial;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use runtime::Engine;

pub use codec::{Codec, Example, Excluded, Expected, Input};
pub(crate) use compare::cut;
pub use compare::{Difference, differences};
pub use cost::Cost;
pub use input::{BadInput, read};
pub use report::{CodecReport, ExampleReport, Loaded, Mismatch, Outcome};
pub use text::Detail;
pub(crate) use text::log_line;
pub use totals::Totals;
pub(crate) use trial::{microseconds, told};

/// Checks `codecs` on `jobs` threads, and tells each report as soon as it and those before it are there.
///
/// What `tell` cannot do ends it: codecs that no thread has begun are left out. Otherwise it gives all reports, in the
/// order of the codecs.
pub fn check<E>(
    engine: &Arc<Engine>,
    codecs: &[Codec],
    jobs: usize,
    tell: impl FnMut(&CodecReport) -> Result<(), E>,
) -> Result<Vec<CodecReport>, E> {
    let next = AtomicUsize::new(0);
    let jobs = jobs.clamp(1, codecs.len().max(1));
    std::thread::scope(|scope| {
        let (done, reports) = mpsc::sync_channel(jobs);
        for _ in 0..jobs {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                let mut sandbox = engine.sandbox();
                while let Some((index, codec)) = take(next, codecs) {
                    if done.send((index, trial::check(engine, &mut sandbox, codec))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        in_order(reports, tell)
    })
}

fn take<'a>(next: &AtomicUsize, codecs: &'a [Codec]) -> Option<(usize, &'a Codec)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    codecs.get(index).map(|codec| (index, codec))
}

/// Tells what comes in any order in the order of the numbers.
fn in_order<T, E>(
    numbered: impl IntoIterator<Item = (usize, T)>,
    mut tell: impl FnMut(&T) -> Result<(), E>,
) -> Result<Vec<T>, E> {
    let (mut told, mut early) = (Vec::new(), BTreeMap::new());
    for (number, thing) in numbered {
        early.insert(number, thing);
        while let Some(thing) = early.remove(&told.len()) {
            tell(&thing)?;
            told.push(thing);
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_told_in_order_and_no_later_than_they_can_be() {
        let mut events = Vec::new();
        let arriving = [2, 0, 1, 4, 3].into_iter().map(|number| (number, number * 10));
        let told = in_order(arriving, |thing| {
            events.push(*thing);
            Ok::<(), ()>(())
        });
        assert_eq!((told, events), (Ok(vec![0, 10, 20, 30, 40]), vec![0, 10, 20, 30, 40]));
    }

    #[test]
    fn nothing_is_waited_for_that_nobody_is_told() {
        let mut arrived = 0;
        let arriving = [1, 0, 2, 3].into_iter().map(|number| {
            arrived += 1;
            (number, number)
        });
        assert_eq!(in_order(arriving, |thing| if *thing == 0 { Ok(()) } else { Err("gone") }), Err("gone"));
        assert_eq!(arrived, 2);
    }
}
