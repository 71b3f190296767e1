//! Cost of an uplink in the handler, from frame to serialized message, compared with its sandbox alone.
//!
//! The store is in memory and the output only serializes messages, so the difference is the handler's own work. Each
//! round keeps enough uplinks in flight to keep every worker busy. One application has the demo's short functions, the
//! other a real decoder.

#![allow(clippy::unwrap_used, missing_docs)]

mod path;

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use handler::output::{Message, Output, PublishReceipt};
use path::{APP_ID, CASES, Case, PORT, pool};
use runtime::{Call, EntryPoint, LoadRequest, Priority, Tenant};
use server::usage::Usage;
use tokio::task::JoinSet;

/// Concurrent uplinks.
const ROUND: usize = 64;

/// Serializes messages and counts their bytes.
#[derive(Default)]
struct Counter(AtomicU64);

impl Output for Counter {
    fn publish(&self, message: Message) -> PublishReceipt {
        let body = serde_json::to_vec(&message.event).unwrap();
        self.0.fetch_add(body.len() as u64, Ordering::Relaxed);
        PublishReceipt::at_once()
    }
}

fn call(case: &Case) -> Call {
    Call {
        entry_point: EntryPoint::Uplink,
        port: PORT,
        time_ms: 1,
        seed: 0,
        payload: case.payload.to_vec(),
        extra: String::new(),
        single_function: None,
    }
}

fn tenant() -> Tenant {
    Tenant::alone(APP_ID, Priority::Live)
}

fn bench(criterion: &mut Criterion) {
    for case in &CASES {
        let mut group = criterion.benchmark_group(format!("uplink/{}", case.name));
        group.throughput(Throughput::Elements(ROUND as u64));
        for workers in [1, 2] {
            let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().unwrap();
            let path = Arc::new(tokio.block_on(case.uplinks(pool(workers), 1, Arc::new(Counter::default()))));
            group.bench_function(BenchmarkId::new("path", workers), |bencher| {
                let one = || {
                    let path = path.clone();
                    async move { path.handle(case.frame(0), &Usage::default()).await.unwrap() }
                };
                bencher.iter(|| tokio.block_on(round(one)));
            });
            let pool = Arc::new(pool(workers));
            let (sources, limits) = (case.sources(), pool.engine().limits().clone());
            let load = LoadRequest { hash: sources.hash(), sources, limits, is_cached: true };
            let functions = tokio.block_on(pool.load(&tenant(), load)).unwrap().unwrap();
            group.bench_function(BenchmarkId::new("sandbox", workers), |bencher| {
                let one = || {
                    let (pool, functions) = (pool.clone(), functions.clone());
                    async move { pool.call(&tenant(), functions, call(case)).await.unwrap() }
                };
                bencher.iter(|| tokio.block_on(round(one)));
            });
        }
        group.finish();
    }
}

/// Runs one round of concurrent uplinks.
async fn round<T: Send + 'static, F: Future<Output = T> + Send + 'static>(one: impl Fn() -> F) {
    let mut round = JoinSet::new();
    for _ in 0..ROUND {
        round.spawn(one());
    }
    black_box(round.join_all().await);
}

criterion_group!(benches, bench);
criterion_main!(benches);
