//! Times several variants in interleaved rounds, so that noise affects all of them alike.

use std::time::{Duration, Instant};

use testing::figures::{median, quantile};

/// Target duration of a batch; shorter batches are interrupted less often.
const BATCH: Duration = Duration::from_micros(1500);
const TIMES_MAX: u32 = 1000;

/// Microseconds per message.
#[derive(Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

impl Timing {
    fn of(mut batches: Vec<f64>) -> Self {
        Self { best: quantile(&mut batches, 0.0), median: median(&mut batches) }
    }
}

/// Runs all messages of a codec the given number of times.
pub(crate) type Way<'a> = Box<dyn FnMut(u32) + 'a>;

/// The time per message of each variant, with its number of rounds; `messages` is the number of messages per
/// repetition.
pub(crate) fn measure(ways: &mut [(usize, Way<'_>)], messages: usize) -> Vec<Timing> {
    let times: Vec<u32> = ways.iter_mut().map(|(_, way)| calibrate(way)).collect();
    let mut batches = vec![Vec::new(); ways.len()];
    let rounds = ways.iter().map(|(rounds, _)| *rounds).max().unwrap_or(0);
    for round in 0..rounds {
        for ((way, times), batches) in ways.iter_mut().zip(&times).zip(&mut batches) {
            if round < way.0 {
                batches.push(clock(&mut way.1, *times) * 1e6 / (f64::from(*times) * messages as f64));
            }
        }
    }
    batches.into_iter().map(Timing::of).collect()
}

/// The number of repetitions per batch.
fn calibrate(way: &mut Way<'_>) -> u32 {
    clock(way, 1);
    let once = clock(way, 1).max(1e-9);
    ((BATCH.as_secs_f64() / once) as u32).clamp(1, TIMES_MAX)
}

/// The duration of a batch, in seconds.
fn clock(way: &mut Way<'_>, times: u32) -> f64 {
    let start = Instant::now();
    way(times);
    start.elapsed().as_secs_f64()
}
