//! Commits when the Redis that took them dies, and a replica of it takes over.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use airlock_store::{Batch, Commit, Entry, Error, ErrorKind, Key, Redis, RedisSettings, Store, Tag};
use testing::{ManualClock, RedisCluster, RedisProcess, RedisSentinels};
use tokio::time::{sleep, timeout};

use crate::backend::{behind, of_cluster, settings};

/// Number of commits made at the same time, each of another tag, and so on all nodes of a cluster.
const WRITERS: usize = 24;
/// Number of commits that precede and follow the death of the primary.
const COMMITS: usize = 2000;
/// Maximum number of changes that wait for replicas at the same time.
const CONNECTIONS: usize = 16;
/// Number of changes made at once while no replica answers.
const CHANGES: usize = 200;
/// Pause before the next attempt after a failure.
const PAUSE: Duration = Duration::from_millis(20);
/// Time after which an impatient caller gives up.
const GIVES_UP_AFTER: Duration = Duration::from_millis(200);
/// Time after which a test is given up.
const HANGS_AFTER: Duration = Duration::from_secs(120);

fn key(writer: usize, number: usize) -> Key {
    Key::new(&Tag::application(&format!("app-{writer}")).unwrap(), &format!("entry/{number:08}")).unwrap()
}

async fn connect(settings: &RedisSettings) -> Arc<Redis> {
    Arc::new(Redis::connect(settings, ManualClock::new().for_store()).await.unwrap())
}

/// Commits until it is told to stop, and returns how many commits were acknowledged. What failed is tried again, as
/// those who call a store do.
async fn write(store: Arc<Redis>, writer: usize, acknowledged: Arc<AtomicUsize>, ends: Arc<AtomicBool>) -> usize {
    let mut number = 0;
    while !ends.load(Ordering::Relaxed) {
        match store.commit(Batch::new().put(key(writer, number), "x")).await {
            Ok(done) => {
                assert_eq!(done, Commit::Done);
                acknowledged.fetch_add(1, Ordering::Relaxed);
                number += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                sleep(PAUSE).await;
            }
        }
    }
    number
}

/// A connection that was idle when its server died fails once.
async fn read(store: &Redis, keys: &[Key]) -> Vec<Option<Entry>> {
    let reading = async {
        loop {
            match store.get(keys).await {
                Ok(found) => return found,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
            sleep(PAUSE).await;
        }
    };
    timeout(HANGS_AFTER, reading).await.expect("reads go on")
}

/// Everything that is acknowledged before, while and after `fail` takes the primary away is there in the end.
async fn nothing_acknowledged_is_lost(settings: &RedisSettings, fail: impl FnOnce()) {
    let store = connect(settings).await;
    let (acknowledged, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let start = |writer| tokio::spawn(write(store.clone(), writer, acknowledged.clone(), ends.clone()));
    let writers: Vec<_> = (0..WRITERS).map(start).collect();
    let reach = async |count| {
        let reaching = async {
            while acknowledged.load(Ordering::Relaxed) < count {
                sleep(PAUSE).await;
            }
        };
        timeout(HANGS_AFTER, reaching).await.expect("commits go on");
    };
    reach(COMMITS).await;
    fail();
    let before = acknowledged.load(Ordering::Relaxed);
    reach(before + COMMITS).await;
    ends.store(true, Ordering::Relaxed);
    for (writer, task) in writers.into_iter().enumerate() {
        let count = task.await.unwrap();
        let numbers: Vec<usize> = (0..count).collect();
        for numbers in numbers.chunks(1000) {
            let keys: Vec<Key> = numbers.iter().map(|number| key(writer, *number)).collect();
            let found = read(&store, &keys).await;
            let lost: Vec<_> = keys.iter().zip(found).filter(|(_, entry)| entry.is_none()).collect();
            assert!(lost.is_empty(), "lost {} of {count} of writer {writer}: {:?}", lost.len(), lost[0]);
        }
    }
}

/// Commits until replicas confirm it: on a busy machine, they may take longer than an impatient caller waits.
async fn until_confirmed(commit: impl AsyncFn() -> Result<Commit, Error>) {
    let confirming = async {
        while commit().await.is_err() {
            sleep(PAUSE).await;
        }
    };
    timeout(HANGS_AFTER, confirming).await.expect("commits are confirmed");
}

/// A change that no replica has is not acknowledged.
async fn replicas_confirm(settings: RedisSettings, freeze: impl FnOnce(), thaw: impl FnOnce()) {
    let store = connect(&RedisSettings { response_timeout_ms: 1000, ..settings }).await;
    let commit = async || store.commit(Batch::new().put(key(0, 0), "x")).await;
    until_confirmed(&commit).await;
    freeze();
    let error = commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    thaw();
    until_confirmed(&commit).await;
}

/// Changes that were refused because too many waited for a replica are not made later, when they might overwrite newer
/// ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_not_sent_in_time_is_never_made() {
    let Some(sentinels) = RedisSentinels::start(1) else { return };
    let store = connect(&RedisSettings { response_timeout_ms: 1000, ..confirmed(behind(&sentinels)) }).await;
    let commit = |number| {
        let store = store.clone();
        async move { store.commit(Batch::new().put(key(0, number), "x")).await }
    };
    until_confirmed(async || commit(CHANGES).await).await;
    sentinels.freeze_replicas();
    let changes: Vec<_> = (0..CHANGES).map(|number| tokio::spawn(commit(number))).collect();
    for change in changes {
        assert!(change.await.unwrap().is_err(), "no replica confirms it");
    }
    assert!(store.check().await.is_err(), "it is not ready");
    let keys: Vec<Key> = (0..CHANGES).map(|number| key(0, number)).collect();
    let before = read(&store, &keys).await;
    sentinels.thaw_replicas();
    let again = async {
        while store.check().await.is_err() || commit(CHANGES).await.is_err() {
            sleep(PAUSE).await;
        }
    };
    timeout(HANGS_AFTER, again).await.expect("commits are confirmed again");
    assert_eq!(read(&store, &keys).await, before);
}

/// A caller may give up before the replicas have answered: then its connection is not free yet, and changes sent behind
/// its own would be made after their callers have given up, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_behind_a_change_that_nobody_waits_for_any_more() {
    let Some(sentinels) = RedisSentinels::start(1) else { return };
    let store = connect(&RedisSettings { response_timeout_ms: 60_000, ..confirmed(behind(&sentinels)) }).await;
    let commit = |number| {
        let store = store.clone();
        async move { store.commit(Batch::new().put(key(0, number), "x")).await }
    };
    let [first, second] = [0..CONNECTIONS, CONNECTIONS..2 * CONNECTIONS];
    let keys = |numbers: &Range<usize>| numbers.clone().map(|number| key(0, number)).collect::<Vec<_>>();
    assert_eq!(commit(CHANGES).await.unwrap(), Commit::Done);
    sentinels.freeze_replicas();
    let changes: Vec<_> = first.clone().map(|number| tokio::spawn(commit(number))).collect();
    let sending = async {
        while read(&store, &keys(&first)).await.iter().any(Option::is_none) {
            sleep(PAUSE).await;
        }
    };
    timeout(HANGS_AFTER, sending).await.expect("each has a connection");
    changes.iter().for_each(tokio::task::JoinHandle::abort);
    for change in changes {
        assert!(change.await.unwrap_err().is_cancelled());
    }
    let changes: Vec<_> = second.clone().map(|number| tokio::spawn(timeout(GIVES_UP_AFTER, commit(number)))).collect();
    for change in changes {
        assert!(change.await.unwrap().is_err(), "no connection is free");
    }
    sentinels.thaw_replicas();
    for number in 0..CONNECTIONS {
        // Each connection answers what it was sent in order.
        let done = timeout(HANGS_AFTER, commit(CHANGES + number)).await.expect("commits go on");
        assert_eq!(done.unwrap(), Commit::Done);
    }
    assert!(read(&store, &keys(&second)).await.iter().all(Option::is_none), "they were made nevertheless");
}

fn confirmed(settings: RedisSettings) -> RedisSettings {
    RedisSettings { confirming_replicas: 1, ..settings }
}

// Conformance: What was acknowledged survives the loss of a primary, if replicas confirm it
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_a_primary_behind_sentinels_is_killed() {
    let Some(mut sentinels) = RedisSentinels::start(1) else { return };
    nothing_acknowledged_is_lost(&confirmed(behind(&sentinels)), || {
        sentinels.kill_sentinel();
        sentinels.kill_primary();
        sentinels.restart_after_failover();
    })
    .await;
}

/// When it resumes, it takes itself for the primary, and has what nobody acknowledged.
// Conformance: What was acknowledged survives the loss of a primary, if replicas confirm it
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_a_primary_behind_sentinels_is_frozen() {
    let Some(sentinels) = RedisSentinels::start(2) else { return };
    let settings = RedisSettings { response_timeout_ms: 1000, ..confirmed(behind(&sentinels)) };
    nothing_acknowledged_is_lost(&settings, || sentinels.freeze_primary()).await;
    sentinels.thaw_primary();
    nothing_acknowledged_is_lost(&settings, || ()).await;
}

// Conformance: What was acknowledged survives the loss of a primary, if replicas confirm it
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_a_node_of_a_cluster_is_killed() {
    let Some(mut cluster) = RedisCluster::start_replicated() else { return };
    nothing_acknowledged_is_lost(&confirmed(of_cluster(&cluster)), || {
        cluster.kill_primary();
        cluster.restart_after_failover();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_behind_sentinels_waits_for_a_replica() {
    let Some(sentinels) = RedisSentinels::start(1) else { return };
    replicas_confirm(confirmed(behind(&sentinels)), || sentinels.freeze_replicas(), || sentinels.thaw_replicas()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_in_a_cluster_waits_for_a_replica() {
    let Some(cluster) = RedisCluster::start_replicated() else { return };
    replicas_confirm(confirmed(of_cluster(&cluster)), || cluster.freeze_replicas(), || cluster.thaw_replicas()).await;
}

/// Without replicas to wait for, a change counts as made when the primary has it.
#[tokio::test]
async fn a_change_waits_for_no_replica_by_default() {
    let Some(sentinels) = RedisSentinels::start(1) else { return };
    let store = connect(&behind(&sentinels)).await;
    sentinels.freeze_replicas();
    assert_eq!(store.commit(Batch::new().put(key(0, 0), "x")).await.unwrap(), Commit::Done);
}

#[tokio::test]
async fn sentinels_that_know_another_primary_are_told_from_sentinels_that_are_away() {
    let Some(sentinels) = RedisSentinels::start(1) else { return };
    let clock = ManualClock::new();
    let other = RedisSettings { urls: vec!["redis://another".to_owned()], ..behind(&sentinels) };
    let away = RedisSettings { sentinels: vec!["redis://127.0.0.1:1".to_owned()], ..behind(&sentinels) };
    for (settings, expected) in [(other, "the sentinels know no primary of this name"), (away, "refused")] {
        let error = Redis::connect(&settings, clock.for_store()).await.err().unwrap();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(expected), "{cause}");
    }
}

#[tokio::test]
async fn a_sentinel_that_hangs_does_not_keep_others_from_answering() {
    let Some(sentinels) = RedisSentinels::start(1) else { return };
    sentinels.freeze_sentinel();
    connect(&RedisSettings { response_timeout_ms: 6000, ..behind(&sentinels) }).await;
}

#[tokio::test]
async fn a_cluster_has_no_sentinels() {
    let Some(server) = RedisProcess::start() else { return };
    let settings = RedisSettings { sentinels: vec![server.url()], ..settings(&server, true) };
    let error = Redis::connect(&settings, ManualClock::new().for_store()).await.err().unwrap();
    assert!(error.to_string().contains("its nodes replace each other"), "{error}");
}
