//! What an uplink costs in the handler, from frame to message, beside what its sandbox alone costs.
//!
//! The store is in memory and the output counts; what is left is our own path. Each round has as many uplinks in
//! flight as keep every worker busy.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use handler::{
    application::{Application, Applications, Functions},
    device::{Device, Devices, Lorawan},
    frame::Frame,
    output::{Message, Output},
    payload::Payloads,
    uplink::Uplinks,
};
use runtime::{Asker, Call, Engine, Entry, Pool, Settings, Sources, Urgency};
use store::{Clock, Embedded};
use tokio::task::JoinSet;
use types::Timestamp;

/// Uplinks in flight.
const ROUND: usize = 64;

const DECODER: &str = include_str!("../cli/demo/decoder.js");
const CONVERTER: &str = include_str!("../cli/demo/converter.js");
const VALIDATOR: &str = include_str!("../cli/demo/validator.js");
const PAYLOAD: [u8; 4] = [0x01, 0x9a, 0xa8, 0xa0];
const PORT: u8 = 1;

/// Counts what it is given, and keeps nothing.
#[derive(Default)]
struct Counter(AtomicU64);

impl Output for Counter {
    fn publish(&self, message: Message) {
        self.0.fetch_add(message.body.len() as u64, Ordering::Relaxed);
    }
}

fn pool(workers: usize) -> Pool {
    let settings = Settings { workers, ..Settings::default() };
    Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap()
}

fn sources() -> Sources {
    Sources {
        decoder: DECODER.to_owned(),
        converter: CONVERTER.to_owned(),
        validator: VALIDATOR.to_owned(),
        ..Sources::default()
    }
}

async fn uplinks(pool: Pool) -> Uplinks {
    let store = Arc::new(Embedded::in_memory(Clock::new(|| 0)).unwrap());
    let (applications, devices) = (Applications::new(store.clone()), Devices::new(store));
    let app_id = "bench-app".parse().unwrap();
    applications.register(&app_id).await.unwrap();
    let functions = Functions {
        decoder: DECODER.to_owned(),
        converter: CONVERTER.to_owned(),
        validator: VALIDATOR.to_owned(),
        encoder: String::new(),
    };
    applications.set(Application { functions, ..Application::new(app_id.clone()) }).await.unwrap();
    let device = Device {
        app_id,
        dev_id: "dev-1".parse().unwrap(),
        description: String::new(),
        latitude: 52.37,
        longitude: 4.89,
        altitude: 3,
        attributes: Default::default(),
        lorawan: Lorawan::default(),
    };
    devices.set(device).await.unwrap();
    let payloads = Arc::new(Payloads::new(pool, &handler::Settings::default()).unwrap());
    Uplinks { devices, payloads, output: Arc::new(Counter::default()) }
}

fn frame() -> Frame {
    let (app_id, dev_id) = ("bench-app".parse().unwrap(), "dev-1".parse().unwrap());
    Frame::simulated(app_id, dev_id, PORT.into(), PAYLOAD.to_vec(), Timestamp::from_millis(1)).unwrap()
}

fn call() -> Call {
    Call { entry: Entry::Uplink, port: PORT, time_ms: 1, seed: 0, payload: PAYLOAD.to_vec(), trial: None }
}

fn asker() -> Asker {
    Asker { tenant: "bench-app".into(), urgency: Urgency::Live }
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("uplink");
    group.throughput(Throughput::Elements(ROUND as u64));
    for workers in [1, 2] {
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().unwrap();
        let path = Arc::new(tokio.block_on(uplinks(pool(workers))));
        group.bench_function(BenchmarkId::new("path", workers), |bencher| {
            bencher.iter(|| {
                tokio.block_on(async {
                    let mut round = JoinSet::new();
                    for _ in 0..ROUND {
                        let path = path.clone();
                        round.spawn(async move { path.handle(frame()).await.unwrap() });
                    }
                    black_box(round.join_all().await)
                })
            });
        });
        let pool = Arc::new(pool(workers));
        let functions =
            tokio.block_on(pool.load(&asker(), sources(), pool.engine().limits().clone())).unwrap().unwrap();
        group.bench_function(BenchmarkId::new("sandbox", workers), |bencher| {
            bencher.iter(|| {
                tokio.block_on(async {
                    let mut round = JoinSet::new();
                    for _ in 0..ROUND {
                        let (pool, functions) = (pool.clone(), functions.clone());
                        round.spawn(async move { pool.call(&asker(), functions, call()).await.unwrap() });
                    }
                    black_box(round.join_all().await)
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
