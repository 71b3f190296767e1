//! Latency of single messages.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use runtime::{Engine, Functions};

use crate::message::{call, check, tenant};
use crate::traffic::Traffic;
use testing::figures::quantile;

/// Endless loops of another application that are always queued.
const ENDLESS_TASKS: usize = 100;

/// Seconds.
#[derive(Clone, Copy)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Latency {
    pub(crate) fn spread(self) -> f64 {
        self.p99 / self.p50
    }

    fn of(mut times: Vec<f64>) -> Self {
        Self { p50: quantile(&mut times, 0.5), p99: quantile(&mut times, 0.99) }
    }
}

/// Latency of honest messages through the pool, one after the other.
pub(crate) fn through_the_pool(traffic: &Traffic, time: Duration) -> Latency {
    Latency::of(traffic.tokio.block_on(async {
        let (mut times, end) = (Vec::new(), Instant::now() + time);
        while Instant::now() < end {
            let start = Instant::now();
            check(&traffic.pool.call(&tenant("honest"), traffic.honest.clone(), call()).await.unwrap());
            times.push(start.elapsed().as_secs_f64());
        }
        times
    }))
}

/// The same in this thread, without a pool.
pub(crate) fn in_this_thread(engine: &Arc<Engine>, functions: &Functions, time: Duration) -> Latency {
    let (mut sandbox, mut times, end) = (engine.sandbox(), Vec::new(), Instant::now() + time);
    while Instant::now() < end {
        let start = Instant::now();
        check(&sandbox.call(functions, &call()));
        times.push(start.elapsed().as_secs_f64());
    }
    Latency::of(times)
}

/// The same through the pool while many endless loops of another application wait.
pub(crate) fn beside_endless(traffic: &Traffic, time: Duration) -> Latency {
    let stop = Arc::new(AtomicBool::new(false));
    let loops: Vec<_> = (0..ENDLESS_TASKS)
        .map(|_| {
            let (pool, endless, stop) = (traffic.pool.clone(), traffic.endless.clone(), stop.clone());
            traffic.tokio.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    pool.call(&tenant("hostile"), endless.clone(), call()).await.unwrap();
                }
            })
        })
        .collect();
    let beside = through_the_pool(traffic, time);
    stop.store(true, Ordering::Relaxed);
    traffic.tokio.block_on(async {
        for endless in loops {
            endless.await.unwrap();
        }
    });
    beside
}
