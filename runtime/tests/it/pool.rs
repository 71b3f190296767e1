//! Workers and their queues.

use std::sync::Arc;

use airlock_runtime::{Busy, Engine, Entry, Kind, Pool, Settings, Slot};

use crate::rig::{call, fields, settings, sources};

const ECHO: &str = "function Decoder(bytes) { return { bytes: bytes }; }";
const ENDLESS: &str = "function Decoder() { while (true) {} }";

fn pool(change: impl FnOnce(&mut Settings)) -> Pool {
    let mut settings = settings();
    change(&mut settings);
    Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap()
}

#[tokio::test]
async fn every_message_gets_its_own_answer() {
    let pool = Arc::new(pool(|settings| settings.workers = 3));
    let texts: Vec<String> = (0..5).map(|n| format!("{ECHO} // {n}")).collect();
    let mut loaded = Vec::new();
    for text in &texts {
        loaded.push(pool.load(sources(Slot::Decoder, text)).await.unwrap().unwrap());
    }
    let tasks: Vec<_> = (0..200_u8)
        .map(|n| {
            let (pool, functions) = (Arc::clone(&pool), loaded[usize::from(n) % 5].clone());
            tokio::spawn(async move { (n, pool.call(functions, call(Entry::Uplink, &[n, n])).await.unwrap()) })
        })
        .collect();
    for task in tasks {
        let (n, report) = task.await.unwrap();
        assert_eq!(fields(&report), format!(r#"{{"bytes":[{n},{n}]}}"#));
    }
    assert_eq!(pool.waiting(), 0);
}

#[tokio::test]
async fn a_full_queue_refuses_and_recovers() {
    let pool = pool(|settings| {
        settings.workers = 1;
        settings.queue_max = 1;
    });
    let endless = pool.load(sources(Slot::Decoder, ENDLESS)).await.unwrap().unwrap();
    let ask = || pool.call(endless.clone(), call(Entry::Uplink, b""));
    // One runs and one waits, so at least two of four find no room.
    let (a, b, c, d) = tokio::join!(ask(), ask(), ask(), ask());
    let answers = [a, b, c, d].map(|answer| answer.map(|report| report.result.unwrap_err().kind));
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Kind::Fuel) | Err(Busy))));
    assert!(answers.iter().filter(|answer| **answer == Err(Busy)).count() >= 2);
    assert_eq!(answers[0], Ok(Kind::Fuel));
    assert_eq!(ask().await.unwrap().result.unwrap_err().kind, Kind::Fuel);
}

#[tokio::test]
async fn an_idle_worker_takes_what_waits_for_a_busy_one() {
    let pool = pool(|settings| {
        settings.workers = 2;
        settings.limits.fuel = u64::MAX;
        settings.limits.time_ms_max = 2_000;
    });
    let text = "function Decoder(bytes) { while (bytes[0]) {} return {}; }";
    let functions = pool.load(sources(Slot::Decoder, text)).await.unwrap().unwrap();
    // Both messages have the same home; the first holds it until the clock ends it.
    let endless = pool.call(functions.clone(), call(Entry::Uplink, &[1]));
    let quick = pool.call(functions, call(Entry::Uplink, &[0]));
    tokio::select! {
        biased;
        _ = endless => panic!("an endless function has ended"),
        report = quick => assert_eq!(fields(&report.unwrap()), "{}"),
    }
}

#[tokio::test]
async fn a_load_that_fails_says_why() {
    let pool = pool(|_| {});
    let failure = pool.load(sources(Slot::Encoder, "function Encoder( {")).await.unwrap().unwrap_err();
    assert_eq!((failure.slot, failure.kind, failure.line), (Slot::Encoder, Kind::Syntax, Some(1)));
    assert!(failure.to_string().starts_with("the encoder cannot be loaded (line 1, column"), "{failure}");
}
