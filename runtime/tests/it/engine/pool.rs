//! The worker pool and its queues.

use std::sync::Arc;

use airlock_runtime::{
    Busy, CallOutcome, Engine, EntryPoint, Failure, FailureKind, Functions, LoadRequest, Pool, Priority, Settings,
    Slot, Sources, Tenant,
};

use crate::harness::{call, fields, settings, sources};

const ECHO: &str = "function Decoder(bytes) { return { bytes: bytes }; }";
const ENDLESS: &str = "function Decoder() { while (true) {} }";

fn pool(change: impl FnOnce(&mut Settings)) -> Pool {
    let mut settings = settings();
    change(&mut settings);
    Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap()
}

async fn load(pool: &Pool, tenant: &str, sources: Sources) -> Functions {
    try_load(pool, tenant, sources).await.unwrap()
}

async fn try_load(pool: &Pool, tenant: &str, sources: Sources) -> Result<Functions, Failure> {
    let (hash, limits) = (sources.hash(), pool.engine().limits().clone());
    let load = LoadRequest { sources, hash, limits, is_cached: true };
    pool.load(&live(tenant), load).await.unwrap()
}

fn live(id: &str) -> Tenant {
    Tenant::alone(id, Priority::Live)
}

#[tokio::test]
async fn every_message_gets_its_own_outcome() {
    let pool = Arc::new(pool(|settings| settings.workers = 3));
    let texts: Vec<String> = (0..5).map(|n| format!("{ECHO} // {n}")).collect();
    let mut loaded = Vec::new();
    for text in &texts {
        loaded.push(load(&pool, "a", sources(Slot::Decoder, text)).await);
    }
    let tasks: Vec<_> = (0..200_u8)
        .map(|n| {
            let (pool, functions) = (Arc::clone(&pool), loaded[usize::from(n) % 5].clone());
            let tenant = live(&format!("tenant {}", n % 5));
            tokio::spawn(
                async move { (n, pool.call(&tenant, functions, call(EntryPoint::Uplink, &[n, n])).await.unwrap()) },
            )
        })
        .collect();
    for task in tasks {
        let (n, outcome) = task.await.unwrap();
        assert_eq!(fields(&outcome), format!(r#"{{"bytes":[{n},{n}]}}"#));
    }
    assert_eq!(pool.waiting(), 0);
}

#[tokio::test]
async fn several_messages_run_in_order_as_long_as_they_are_short_together() {
    let pool = pool(|settings| {
        settings.workers = 2;
        settings.limits.fuel = 50_000_000;
    });
    let text = "function Decoder(bytes) {
        while (bytes[0] === 13) {}
        for (let round = 0; bytes[0] === 14 && round < 500; round++) {}
        return { bytes: bytes };
    }";
    let functions = load(&pool, "a", sources(Slot::Decoder, text)).await;
    let calls = |payloads: &[u8]| payloads.iter().map(|byte| call(EntryPoint::Uplink, &[*byte])).collect();
    for (tenant, fuel) in [(live("a"), Some(1_000)), (Tenant::alone("a", Priority::DryRun), None)] {
        let payloads: Vec<u8> = (0..12).collect();
        let outcomes = pool.call_several(&tenant, functions.clone(), calls(&payloads), fuel).await.unwrap();
        let expected: Vec<_> = payloads.iter().map(|byte| format!(r#"{{"bytes":[{byte}]}}"#)).collect();
        assert_eq!(outcomes.iter().map(fields).collect::<Vec<_>>(), expected);

        let outcomes = pool.call_several(&tenant, functions.clone(), calls(&[7, 13, 8, 9]), fuel).await.unwrap();
        assert_eq!((outcomes.len(), fields(&outcomes[0])), (2, r#"{"bytes":[7]}"#));
        assert_eq!(outcomes[1].result.as_ref().unwrap_err().kind, FailureKind::Fuel);
    }
    // None is long, all of them are.
    let outcomes = pool.call_several(&live("a"), functions.clone(), calls(&[14; 200]), None).await.unwrap();
    let fuel = |outcomes: &[CallOutcome]| outcomes.iter().map(|outcome| outcome.fuel).sum::<u64>();
    let (last, others) = outcomes.split_last().unwrap();
    assert!(last.result.is_ok() && others.len() > 1 && outcomes.len() < 200, "{} of 200 ran", outcomes.len());
    assert!(fuel(others) <= 50_000_000 / 16, "they had used {} before the last", fuel(others));
    assert!(pool.call_several(&live("a"), functions, Vec::new(), None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_full_queue_refuses_and_recovers() {
    let pool = pool(|settings| {
        settings.workers = 1;
        settings.queue_max = 1;
    });
    let endless = load(&pool, "a", sources(Slot::Decoder, ENDLESS)).await;
    let a = live("a");
    let ask = || pool.call(&a, endless.clone(), call(EntryPoint::Uplink, b""));
    // One runs and one waits, so at least two of four are refused.
    let (a, b, c, d) = tokio::join!(ask(), ask(), ask(), ask());
    let outcomes = [a, b, c, d].map(|outcome| outcome.map(|outcome| outcome.result.unwrap_err().kind));
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(FailureKind::Fuel) | Err(Busy))));
    assert!(outcomes.iter().filter(|outcome| **outcome == Err(Busy)).count() >= 2);
    assert_eq!(outcomes[0], Ok(FailureKind::Fuel));
    assert_eq!(ask().await.unwrap().result.unwrap_err().kind, FailureKind::Fuel);
}

#[tokio::test]
async fn endless_loops_of_one_tenant_do_not_block_another() {
    let pool = Arc::new(pool(|settings| {
        settings.workers = 1;
        // Each takes so long that few end while this thread does not get a processor.
        settings.limits.fuel = 200_000_000;
    }));
    let bad = load(&pool, "bad", sources(Slot::Decoder, ENDLESS)).await;
    let good = load(&pool, "good", sources(Slot::Decoder, ECHO)).await;
    let send = |tenant, functions: &Functions, payload: u8| {
        let (pool, functions) = (Arc::clone(&pool), functions.clone());
        tokio::spawn(async move { pool.call(&live(tenant), functions, call(EntryPoint::Uplink, &[payload])).await })
    };
    let bad: Vec<_> = (0..40).map(|n| send("bad", &bad, n)).collect();
    // All of them are queued once this task runs again.
    tokio::task::yield_now().await;
    let before = pool.waiting();
    assert!(before > bad.len() / 2, "only {before} wait");
    for (n, task) in (0..20).map(|n| send("good", &good, n)).enumerate().collect::<Vec<_>>() {
        let outcome = task.await.unwrap().unwrap();
        assert_eq!(fields(&outcome), format!(r#"{{"bytes":[{n}]}}"#));
    }
    // One loop is running when they arrive; a few more may start before and after them.
    let overtook = before - pool.waiting();
    assert!(overtook < 10, "{overtook} of {} endless loops went first", bad.len());
}

#[tokio::test]
async fn an_idle_worker_takes_jobs_that_wait_for_a_busy_one() {
    let pool = pool(|settings| {
        settings.workers = 2;
        settings.limits.fuel = u64::MAX;
        settings.limits.time_ms_max = 2_000;
    });
    let text = "function Decoder(bytes) { while (bytes[0]) {} return {}; }";
    let functions = load(&pool, "a", sources(Slot::Decoder, text)).await;
    // Both messages prefer the same worker; the first occupies it until the time limit.
    let a = live("a");
    let endless = pool.call(&a, functions.clone(), call(EntryPoint::Uplink, &[1]));
    let quick = pool.call(&a, functions, call(EntryPoint::Uplink, &[0]));
    tokio::select! {
        biased;
        _ = endless => panic!("an endless function has ended"),
        outcome = quick => assert_eq!(fields(&outcome.unwrap()), "{}"),
    }
}

#[tokio::test]
async fn a_failed_load_reports_its_failure() {
    let pool = pool(|_| {});
    let failure = try_load(&pool, "a", sources(Slot::Encoder, "function Encoder( {")).await.unwrap_err();
    assert_eq!((failure.slot, failure.kind, failure.line), (Slot::Encoder, FailureKind::Syntax, Some(1)));
    assert!(failure.to_string().starts_with("the encoder cannot be loaded (line 1, column"), "{failure}");
}

/// Some 110 kB that never end, another one for each number.
fn endless_load(number: usize) -> Sources {
    let text = "function field(bytes) { return bytes[0] << 8 | bytes[1]; }\n".repeat(2_000);
    sources(Slot::Decoder, &format!("{text}while (true) {{}} // {number}"))
}

#[tokio::test]
async fn large_dry_runs_do_not_stand_before_live_functions() {
    let pool = Arc::new(pool(|settings| settings.workers = 1));
    let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let mut loads = tokio::task::JoinSet::new();
    for number in 0..4 {
        let (pool, ended) = (Arc::clone(&pool), ended.clone());
        let sources = endless_load(number);
        let load =
            LoadRequest { hash: sources.hash(), limits: pool.engine().limits().clone(), sources, is_cached: false };
        loads.spawn(async move {
            let tenant = Tenant::alone("hostile", Priority::DryRun);
            let loaded = pool.load(&tenant, load).await.unwrap();
            ended.send("dry").unwrap();
            loaded.unwrap_err().kind
        });
    }
    // All of them are queued, and the first ones are being evaluated.
    tokio::task::yield_now().await;
    let functions = load(&pool, "honest", sources(Slot::Decoder, ECHO)).await;
    let outcome = pool.call(&live("honest"), functions, call(EntryPoint::Uplink, &[1])).await.unwrap();
    ended.send("live").unwrap();
    assert_eq!(fields(&outcome), r#"{"bytes":[1]}"#);
    assert_eq!(ends.recv().await, Some("live"));
    assert!(loads.join_all().await.iter().all(|kind| *kind == FailureKind::Fuel));
}
