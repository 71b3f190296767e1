//! A clock that jumps ahead removes nothing: what seems to have expired is there again when the clock goes back.

use std::{path::Path, time::Duration};

use airlock_store::{Batch, Commit, Embedded, Key, Redis, Store, Tag};
use testing::{ManualClock, RedisProcess};

use crate::{backend::settings, file::unlocked};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn key(path: &str) -> Key {
    Key::new(&Tag::application("jumps").unwrap(), path).unwrap()
}

async fn commit(store: &dyn Store, batch: Batch) {
    assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
}

async fn put_for_a_week(store: &dyn Store, clock: &ManualClock) {
    let batch = Batch::new().put_until(key("waiting"), "x", clock.millis() + 7 * DAY.as_millis() as u64);
    commit(store, batch).await;
}

async fn is_there(store: &dyn Store) -> bool {
    store.get(&[key("waiting")]).await.unwrap()[0].is_some()
}

/// Commits like a service whose clock is eight days ahead.
async fn work_ahead(store: &dyn Store, clock: &ManualClock) {
    for second in 0..5 {
        commit(store, Batch::new().put(key("other"), format!("{second}"))).await;
        clock.advance(Duration::from_secs(1));
    }
    assert!(!is_there(store).await, "what has expired by the clock does not exist");
}

fn open(path: &Path, clock: &std::sync::Arc<ManualClock>) -> Embedded {
    unlocked(|| Embedded::open(path, clock.for_store()))
}

#[tokio::test]
async fn a_file_loses_nothing_by_a_clock_that_is_ahead_at_a_start() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let path = dir.path().join("store.redb");
    put_for_a_week(&open(&path, &clock), &clock).await;
    clock.jump(8 * DAY);
    // A process that is started twice does not believe its own commits.
    for _ in 0..2 {
        work_ahead(&open(&path, &clock), &clock).await;
    }
    clock.set_back(8 * DAY);
    let store = open(&path, &clock);
    commit(&store, Batch::new().put(key("other"), "x")).await;
    assert!(is_there(&store).await);
}

#[tokio::test]
async fn a_file_loses_nothing_by_a_clock_that_jumps_while_it_is_open() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let store = open(&dir.path().join("store.redb"), &clock);
    put_for_a_week(&store, &clock).await;
    clock.jump(8 * DAY);
    work_ahead(&store, &clock).await;
    clock.set_back(8 * DAY);
    commit(&store, Batch::new().put(key("other"), "x")).await;
    assert!(is_there(&store).await);
}

/// Otherwise nothing would ever be removed after a long time without a start.
#[tokio::test]
async fn a_clock_that_stays_ahead_is_believed() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let store = open(&dir.path().join("store.redb"), &clock);
    put_for_a_week(&store, &clock).await;
    clock.jump(8 * DAY);
    work_ahead(&store, &clock).await;
    clock.advance(Duration::from_secs(600));
    commit(&store, Batch::new().put(key("other"), "x")).await;
    clock.set_back(8 * DAY);
    assert!(!is_there(&store).await);
}

#[tokio::test]
async fn a_redis_loses_nothing_by_a_clock_that_is_ahead() {
    let Some(server) = RedisProcess::start() else { return };
    let clock = ManualClock::new();
    let connect = async || Redis::connect(&settings(&server, false), clock.for_store()).await.unwrap();
    let store = connect().await;
    put_for_a_week(&store, &clock).await;
    clock.jump(8 * DAY);
    // Both one that is connected already and one that is started then.
    work_ahead(&store, &clock).await;
    work_ahead(&connect().await, &clock).await;
    // Everything that is left expires: only Redis' own expiry could remove it now.
    commit(&store, Batch::new().delete(key("other"))).await;
    let mut connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let rest: i64 = redis::cmd("PTTL").arg("airlock:{a:jumps}#entries").query_async(&mut connection).await.unwrap();
    assert!(rest < 0 || rest > 6 * DAY.as_millis() as i64, "{rest}");
    clock.set_back(8 * DAY);
    commit(&store, Batch::new().put(key("other"), "x")).await;
    assert!(is_there(&store).await);
}
