//! What an uplink costs in the handler, from frame to serialized message, compared with its sandbox alone.
//!
//! The store is in memory and the output only serializes messages, so the difference is the handler's own work. Each
//! round keeps enough uplinks in flight to keep every worker busy. One application has the demo's short functions, the
//! other a real decoder.

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
    application::{Application, Applications, JoinKeyChange},
    device::{Device, Devices, Lorawan},
    output::{Kept, Message, Output},
    payload::Payloads,
    sealer::Sealer,
    uplink::{Frame, Uplinks},
};
use runtime::{Call, Engine, EntryPoint, LoadRequest, Pool, Priority, Settings, Sources, Tenant};
use server::{
    seal::{KeyOwner, SealingKeys},
    system::{OsRandom, SystemClock},
    usage::Usage,
};
use store::{Embedded, StoreClock};
use tokio::task::JoinSet;
use types::{AppId, Timestamp};

/// Concurrent uplinks.
const ROUND: usize = 64;

/// An application's functions, and a payload for them.
struct Case {
    name: &'static str,
    decoder: &'static str,
    converter: &'static str,
    validator: &'static str,
    payload: &'static [u8],
}

const CASES: [Case; 2] = [
    Case {
        name: "demo 1 KiB",
        decoder: include_str!("../cli/commands/demo/decoder.js"),
        converter: include_str!("../cli/commands/demo/converter.js"),
        validator: include_str!("../cli/commands/demo/validator.js"),
        payload: &[0x01, 0x9a, 0xa8, 0xa0],
    },
    Case {
        name: "meter 38 KiB",
        decoder: include_str!("codecs/meter.js"),
        converter: "",
        validator: "",
        payload: include_bytes!("codecs/meter.bin"),
    },
];
const PORT: u8 = 1;

/// Serializes messages and counts their bytes.
#[derive(Default)]
struct Counter(AtomicU64);

impl Output for Counter {
    fn publish(&self, message: Message) -> Kept {
        let body = serde_json::to_vec(&message.event).unwrap();
        self.0.fetch_add(body.len() as u64, Ordering::Relaxed);
        Kept::at_once()
    }
}

fn pool(workers: usize) -> Pool {
    let settings = Settings { workers, ..Settings::default() };
    Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap()
}

impl Case {
    fn sources(&self) -> Sources {
        Sources {
            decoder: self.decoder.to_owned(),
            converter: self.converter.to_owned(),
            validator: self.validator.to_owned(),
            ..Sources::default()
        }
    }

    async fn uplinks(&self, pool: Pool) -> Uplinks {
        let store = Arc::new(Embedded::in_memory(StoreClock::new(|| 0)).unwrap());
        let keys = SealingKeys::new(KeyOwner::Handler, &[7; 32]).unwrap();
        let sealer = Sealer::for_store(keys, store.as_ref(), Arc::new(OsRandom)).await.unwrap();
        let (applications, devices) =
            (Applications::new(store.clone(), sealer.clone()), Devices::new(store, sealer, Arc::new(SystemClock)));
        let app_id = "bench-app".parse().unwrap();
        applications.register(&app_id).await.unwrap();
        let application = Application::with_functions(app_id.clone(), String::new(), self.sources());
        applications.set(application, JoinKeyChange::Replace).await.unwrap();
        devices.set(device(app_id)).await.unwrap();
        let payloads = Arc::new(Payloads::new(pool, &handler::Settings::default()).unwrap());
        Uplinks { applications, devices, payloads, output: Arc::new(Counter::default()) }
    }

    fn frame(&self) -> Frame {
        let (app_id, dev_id) = ("bench-app".parse().unwrap(), "dev-1".parse().unwrap());
        Frame::simulated(app_id, dev_id, PORT.into(), self.payload.to_vec(), Timestamp::from_millis(1)).unwrap()
    }

    fn call(&self) -> Call {
        Call {
            entry_point: EntryPoint::Uplink,
            port: PORT,
            time_ms: 1,
            seed: 0,
            payload: self.payload.to_vec(),
            extra: String::new(),
            single_function: None,
        }
    }
}

fn device(app_id: AppId) -> Device {
    Device {
        app_id,
        dev_id: "dev-1".parse().unwrap(),
        description: String::new(),
        latitude: 52.37,
        longitude: 4.89,
        altitude: 3,
        attributes: Default::default(),
        lorawan: Lorawan::default(),
    }
}

fn tenant() -> Tenant {
    Tenant { id: "bench-app".into(), priority: Priority::Live }
}

fn bench(criterion: &mut Criterion) {
    for case in &CASES {
        let mut group = criterion.benchmark_group(format!("uplink/{}", case.name));
        group.throughput(Throughput::Elements(ROUND as u64));
        for workers in [1, 2] {
            let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().unwrap();
            let path = Arc::new(tokio.block_on(case.uplinks(pool(workers))));
            group.bench_function(BenchmarkId::new("path", workers), |bencher| {
                let one = || {
                    let path = path.clone();
                    async move { path.handle(case.frame(), &Usage::default()).await.unwrap() }
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
                    async move { pool.call(&tenant(), functions, case.call()).await.unwrap() }
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
