//! Threads that work through a list, and the order in which is told what came of it.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

/// How far the threads may be ahead of what is told, in things for each: a slow one holds up the others after that many.
const AHEAD_MAX: usize = 4;

/// Works on each of `things` with `workers` threads, and tells what came of it as soon as it and those before are done.
///
/// Where the work panics, nothing came of that one thing, and the thread goes on with a worker that it makes anew. What
/// `tell` cannot do ends it: things that no thread has begun are left out.
pub(super) fn in_order<T: Sync, R: Send, W: FnMut(&T) -> R, E>(
    things: &[T],
    workers: usize,
    make_worker: impl Fn() -> W + Sync,
    tell: impl FnMut(&T, Option<R>) -> Result<(), E>,
) -> Result<(), E> {
    let workers = workers.clamp(1, things.len().max(1));
    let ahead = AHEAD_MAX * workers;
    let (begin, begun) = sync_channel(ahead);
    let begun = Mutex::new(begun);
    thread::scope(|scope| {
        let (done, results) = sync_channel(ahead);
        for _ in 0..workers {
            let (begun, done, make_worker) = (&begun, done.clone(), &make_worker);
            scope.spawn(move || work(begun, &done, make_worker));
        }
        drop(done);
        let ended = lead(things, ahead, &begin, &results, tell);
        // Whoever waits for more, or for somebody to listen, is let go.
        drop((begin, results));
        ended
    })
}

/// Gives out things, never more than `ahead` beyond the one that is told next.
fn lead<'a, T, R, E>(
    things: &'a [T],
    ahead: usize,
    begin: &SyncSender<(usize, &'a T)>,
    results: &Receiver<(usize, Option<R>)>,
    mut tell: impl FnMut(&T, Option<R>) -> Result<(), E>,
) -> Result<(), E> {
    let mut waiting = things.iter().enumerate();
    // The queue has room for as many, so this waits for nobody.
    let mut give_out = |count: usize| waiting.by_ref().take(count).for_each(|thing| _ = begin.send(thing));
    give_out(ahead);
    let mut early = BTreeMap::new();
    for (number, thing) in things.iter().enumerate() {
        while !early.contains_key(&number) {
            let Ok((done, result)) = results.recv() else { return Ok(()) };
            early.insert(done, result);
        }
        tell(thing, early.remove(&number).flatten())?;
        give_out(1);
    }
    Ok(())
}

fn work<T, R, W: FnMut(&T) -> R>(
    begun: &Mutex<Receiver<(usize, &T)>>,
    done: &SyncSender<(usize, Option<R>)>,
    make_worker: impl Fn() -> W,
) {
    let next = || begun.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    let mut worker = make_worker();
    while let Some((number, thing)) = next() {
        let result = catch_unwind(AssertUnwindSafe(|| worker(thing))).ok();
        if result.is_none() {
            worker = make_worker();
        }
        if done.send((number, result)).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// What is told of the numbers up to `count`, each of them doubled.
    fn told(count: usize, workers: usize, double: impl Fn(usize) -> usize + Sync) -> Vec<(usize, Option<usize>)> {
        let things: Vec<usize> = (0..count).collect();
        let mut told = Vec::new();
        let worker = || |thing: &usize| double(*thing);
        let ended = in_order(&things, workers, worker, |thing, result| {
            told.push((*thing, result));
            Ok::<(), ()>(())
        });
        assert_eq!(ended, Ok(()));
        told
    }

    #[test]
    fn everything_is_told_once_and_in_order() {
        for (count, workers) in [(0, 2), (1, 8), (3, 2), (100, 0), (100, 1), (100, 3), (100, 200)] {
            let expected: Vec<_> = (0..count).map(|thing| (thing, Some(2 * thing))).collect();
            assert_eq!(told(count, workers, |thing| 2 * thing), expected, "{count} {workers}");
        }
    }

    #[test]
    fn a_panic_leaves_out_one_thing_and_its_worker() {
        let made = AtomicUsize::new(0);
        let make = || {
            made.fetch_add(1, Ordering::Relaxed);
            |thing: &usize| if thing % 10 == 7 { panic!("injected") } else { *thing }
        };
        let mut told = Vec::new();
        let things: Vec<usize> = (0..100).collect();
        in_order(&things, 2, make, |_, result| {
            told.push(result);
            Ok::<(), ()>(())
        })
        .unwrap();
        let expected: Vec<_> = (0..100).map(|thing| (thing % 10 != 7).then_some(thing)).collect();
        assert_eq!((told, made.into_inner()), (expected, 2 + 10));
    }

    #[test]
    fn nothing_is_begun_far_ahead_of_a_slow_one() {
        // The first waits until the others have begun all that they may, and tells how many those are with itself.
        let (begun, allowed) = (AtomicUsize::new(0), 2 * AHEAD_MAX);
        let told = told(100, 2, |thing| {
            begun.fetch_add(1, Ordering::SeqCst);
            while thing == 0 && begun.load(Ordering::SeqCst) < allowed {
                thread::yield_now();
            }
            begun.load(Ordering::SeqCst)
        });
        assert_eq!((told[0], told.len()), ((0, Some(allowed)), 100));
    }

    #[test]
    fn nothing_is_begun_any_more_when_nobody_listens() {
        let begun = AtomicUsize::new(0);
        let count = |_: &usize| begun.fetch_add(1, Ordering::Relaxed);
        let things: Vec<usize> = (0..1000).collect();
        let ended = in_order(&things, 2, || count, |thing, _| if *thing == 2 { Err("gone") } else { Ok(()) });
        assert_eq!(ended, Err("gone"));
        assert!((3..=2 + 2 * AHEAD_MAX).contains(&begun.into_inner()));
    }
}
