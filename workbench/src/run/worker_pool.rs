//! A worker pool that reports results in input order.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{SyncSender, sync_channel},
    thread,
};

/// The stack of a worker, in bytes. Parsers descend into a text as deep as it is nested, and only pages that are used
/// take memory.
const STACK_BYTES: usize = 256 << 20;
/// Maximum number of finished results per worker that wait until the ones before them are reported.
const AHEAD_MAX: usize = 4;

/// Processes `items` on `workers` threads and reports each result in the order of `items`.
///
/// A panic while processing an item reports `None` for it, and the thread continues with a new worker. An error of
/// `report` ends the run: items that no thread has started are skipped.
pub(crate) fn map_in_order<T: Sync, R: Send, W: FnMut(&T) -> R, E>(
    items: &[T],
    workers: usize,
    make_worker: impl Fn() -> W + Sync,
    mut report: impl FnMut(&T, Option<R>) -> Result<(), E>,
) -> Result<(), E> {
    let workers = workers.clamp(1, items.len().max(1));
    thread::scope(|scope| {
        // Item `i` belongs to worker `i % workers`, so taking one result of each in turn restores the order.
        let spawn = |first: usize| {
            let (sender, receiver) = sync_channel(AHEAD_MAX);
            let (own, make_worker) = (items.iter().skip(first).step_by(workers), &make_worker);
            let worker = thread::Builder::new().stack_size(STACK_BYTES);
            // Without a thread, its items have no result.
            _ = worker.spawn_scoped(scope, move || work(own, make_worker, &sender));
            receiver
        };
        let results: Vec<_> = (0..workers).map(spawn).collect();
        items
            .iter()
            .zip(results.iter().cycle())
            .try_for_each(|(item, result)| report(item, result.recv().ok().flatten()))
    })
}

fn work<'a, T: 'a, R, W: FnMut(&T) -> R>(
    items: impl Iterator<Item = &'a T>,
    make_worker: impl Fn() -> W,
    results: &SyncSender<Option<R>>,
) {
    let mut worker = make_worker();
    for item in items {
        let result = catch_unwind(AssertUnwindSafe(|| worker(item))).ok();
        if result.is_none() {
            worker = make_worker();
        }
        if results.send(result).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Returns what is reported for the numbers below `count`.
    fn reported(count: usize, workers: usize, map: impl Fn(usize) -> usize + Sync) -> Vec<(usize, Option<usize>)> {
        let items: Vec<usize> = (0..count).collect();
        let mut reported = Vec::new();
        let worker = || |item: &usize| map(*item);
        let result = map_in_order(&items, workers, worker, |item, result| {
            reported.push((*item, result));
            Ok::<(), ()>(())
        });
        assert_eq!(result, Ok(()));
        reported
    }

    #[test]
    fn reports_every_item_once_and_in_order() {
        for (count, workers) in [(0, 2), (1, 8), (3, 2), (100, 0), (100, 1), (100, 3), (100, 200)] {
            let expected: Vec<_> = (0..count).map(|item| (item, Some(2 * item))).collect();
            assert_eq!(reported(count, workers, |item| 2 * item), expected, "{count} {workers}");
        }
    }

    #[test]
    fn a_panic_loses_one_result_and_its_worker() {
        let made = AtomicUsize::new(0);
        let make = || {
            made.fetch_add(1, Ordering::Relaxed);
            |item: &usize| if item % 10 == 7 { panic!("injected") } else { *item }
        };
        let mut reported = Vec::new();
        let items: Vec<usize> = (0..100).collect();
        map_in_order(&items, 2, make, |_, result| {
            reported.push(result);
            Ok::<(), ()>(())
        })
        .unwrap();
        let expected: Vec<_> = (0..100).map(|item| (item % 10 != 7).then_some(item)).collect();
        assert_eq!((reported, made.into_inner()), (expected, 2 + 10));
    }

    #[test]
    fn no_worker_runs_far_ahead_of_a_slow_one() {
        // The first item waits until the other worker has started all that it may, and returns how many have started.
        let (started, allowed) = (AtomicUsize::new(0), 1 + AHEAD_MAX + 1);
        let reported = reported(100, 2, |item| {
            started.fetch_add(1, Ordering::SeqCst);
            while item == 0 && started.load(Ordering::SeqCst) < allowed {
                thread::yield_now();
            }
            started.load(Ordering::SeqCst)
        });
        assert_eq!((reported[0], reported.len()), ((0, Some(allowed)), 100));
    }

    #[test]
    fn starts_nothing_more_after_an_error() {
        let started = AtomicUsize::new(0);
        let count = |_: &usize| started.fetch_add(1, Ordering::Relaxed);
        let items: Vec<usize> = (0..1000).collect();
        let result = map_in_order(&items, 2, || count, |item, _| if *item == 2 { Err("gone") } else { Ok(()) });
        assert_eq!(result, Err("gone"));
        assert!((3..=3 + 2 * (AHEAD_MAX + 1)).contains(&started.into_inner()));
    }
}
