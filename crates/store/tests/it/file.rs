//! Behaviour of the file alone: it survives restarts, and opening it reports clear errors.

use std::{
    future::ready,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    pin::pin,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use airlock_store::{Batch, Commit, Embedded, Error, ErrorKind, Key, Redis, RedisSettings, Restoring, Store, Tag};
use testing::{ManualClock, RedisProcess};

use crate::{backend::settings, contract::all};

/// The variable that tells the child process of the kill test its file.
const CHILD_PATH: &str = "STORE_TEST_CHILD_PATH";
/// The page size of redb.
const PAGE_BYTES: usize = 4096;
/// Number of pages damaged, one at a time.
const PAGES_MAX: usize = 200;
/// Number of commits that the child acknowledges before it is killed.
const ACKNOWLEDGED: usize = 40;

fn key(path: &str) -> Key {
    Key::new(&Tag::application("file").unwrap(), path).unwrap()
}

fn open(path: &Path) -> Result<Embedded, Error> {
    Embedded::open(path, ManualClock::new().for_store())
}

/// Waits until a file that was closed is no longer locked: a program that another test is starting inherits the lock
/// until it runs.
pub(crate) fn unlocked<T>(start: impl Fn() -> Result<T, Error>) -> T {
    loop {
        match start() {
            Err(Error::Locked { .. }) => std::thread::yield_now(),
            started => return started.unwrap(),
        }
    }
}

async fn put(store: &dyn Store, path: &str) {
    assert_eq!(store.commit(Batch::new().put(key(path), path.to_owned())).await.unwrap(), Commit::Done);
}

#[tokio::test]
async fn a_reopened_file_has_everything() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/dir/store.redb");
    let first = open(&path).unwrap();
    put(&first, "a").await;
    let before = first.get(&[key("a")]).await.unwrap();
    drop(first);

    let second = unlocked(|| open(&path));
    assert_eq!(second.get(&[key("a")]).await.unwrap(), before);
    put(&second, "a").await;
    assert!(second.get(&[key("a")]).await.unwrap()[0].as_ref().unwrap().version > before[0].as_ref().unwrap().version);
}

#[tokio::test]
async fn an_open_file_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let first = open(&path).unwrap();
    let error = open(&path).err().unwrap();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(error.to_string().starts_with("already running"), "{error}");
    put(&first, "still-works").await;
}

#[tokio::test]
async fn a_store_is_closed_when_its_last_reader_has_finished() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let first = Arc::new(open(&path).unwrap());
    let mut closed = pin!(first.closed());
    let (reader, other) = (first.clone(), first);
    drop(other);
    tokio::select! {
        biased;
        () = &mut closed => panic!("closed while a reader has it"),
        () = ready(()) => {},
    }
    let listing = tokio::spawn(async move { reader.list(&key("a"), None, 10).await.unwrap() });
    closed.await;
    unlocked(|| open(&path));
    listing.await.unwrap();
}

#[test]
fn refuses_a_file_of_a_newer_version() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    drop(open(&path).unwrap());
    let later = redb::Database::open(&path).unwrap();
    let transaction = later.begin_write().unwrap();
    let meta: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("meta");
    transaction.open_table(meta).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(later);
    let error = open(&path).err().unwrap();
    assert!(matches!(error, Error::Newer { found: 2, supported: 1 }), "{error}");
}

#[tokio::test]
async fn refuses_a_redis_of_a_newer_version() {
    let Some(server) = RedisProcess::start() else { return };
    let mut connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    redis::cmd("SET").arg("airlock:{d:store}#format").arg(2).exec_async(&mut connection).await.unwrap();
    let error = Redis::connect(&settings(&server, false), ManualClock::new().for_store()).await.err().unwrap();
    assert!(matches!(error, Error::Newer { found: 2, supported: 1 }), "{error}");
}

#[tokio::test]
async fn waits_for_a_redis_that_is_loading() {
    let Some(mut server) = RedisProcess::start() else { return };
    let before = Redis::connect(&settings(&server, false), ManualClock::new().for_store()).await.unwrap();
    put(&before, "a").await;
    drop(before);
    server.restart_loading();
    let impatient = RedisSettings { loading_timeout_ms: 1, ..settings(&server, false) };
    let error = Redis::connect(&impatient, ManualClock::new().for_store()).await.err().unwrap();
    assert!(error.to_string().contains("wait until Redis has loaded"), "{error}");
    let store = Redis::connect(&settings(&server, false), ManualClock::new().for_store()).await.unwrap();
    assert!(store.get(&[key("a")]).await.unwrap()[0].is_some());
}

#[tokio::test]
async fn waits_for_a_cluster_that_is_not_complete() {
    let Some(server) = RedisProcess::start_cluster() else { return };
    let settings = settings(&server, true);
    put(&Redis::connect(&settings, ManualClock::new().for_store()).await.unwrap(), "a").await;
    server.break_cluster();
    let impatient = RedisSettings { loading_timeout_ms: 1, ..settings.clone() };
    let error = Redis::connect(&impatient, ManualClock::new().for_store()).await.err().unwrap();
    assert!(error.to_string().contains("wait until Redis has loaded"), "{error}");
    let connecting = tokio::spawn(async move { Redis::connect(&settings, ManualClock::new().for_store()).await });
    server.mend_cluster();
    let store = connecting.await.unwrap().unwrap();
    assert!(store.get(&[key("a")]).await.unwrap()[0].is_some());
}

#[tokio::test]
async fn a_damaged_page_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = open(&path).unwrap();
    for number in 0..300 {
        put(&store, &format!("{number:03}")).await;
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let (mut refused, mut ended) = (0, 0);
    // The first page is the header.
    for page in (1..whole.len() / PAGE_BYTES).take(PAGES_MAX) {
        let damaged = dir.path().join("damaged.redb");
        let mut bytes = whole.clone();
        bytes[page * PAGE_BYTES..][..PAGE_BYTES].fill(0xa5);
        std::fs::write(&damaged, bytes).unwrap();
        let store = match open(&damaged) {
            Ok(store) => store,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "page {page}: {error}");
                refused += 1;
                continue;
            }
        };
        let failure = store.failure();
        let read = store.get(&[key("000")]).await.map(drop);
        let listed = store.list(&key(""), None, 1000).await.map(drop);
        let written = store.commit(Batch::new().put(key("150"), "new")).await.map(drop);
        let is_unavailable = |error: Error| error.kind() == ErrorKind::Unavailable;
        if [read, listed, written].into_iter().any(|result| result.is_err_and(is_unavailable)) {
            assert!(matches!(failure.await, Error::Failed { .. }), "page {page}");
            ended += 1;
        }
    }
    assert!(refused + ended > 0, "some of the pages are in use");
}

#[test]
fn names_the_file_that_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    let error = open(&file.join("store.redb")).err().unwrap();
    assert!(matches!(error, Error::Unwritable { .. }), "{error}");
    assert!(error.to_string().contains("store.redb"), "{error}");
}

#[test]
fn leaves_a_file_of_another_kind_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let text = "a letter to somebody".repeat(1000);
    std::fs::write(&path, &text).unwrap();
    let error = open(&path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn an_empty_file_is_damaged_and_not_a_new_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = open(&path).unwrap();
    put(&store, "a").await;
    drop(store);
    let length = std::fs::metadata(&path).unwrap().len();
    for length in [0, 1, 64, 100, 4096, length / 2, length - 1] {
        let copy = dir.path().join(format!("copy-{length}.redb"));
        std::fs::copy(&path, &copy).unwrap();
        std::fs::OpenOptions::new().write(true).open(&copy).unwrap().set_len(length).unwrap();
        let error = open(&copy).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{length}: {error}");
        assert!(error.to_string().contains("restore it from a backup"), "{error}");
        assert_eq!(std::fs::metadata(&copy).unwrap().len(), length);
    }
}

#[tokio::test]
async fn what_a_killed_process_began_to_create_is_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    for part in ["", "a part of a file"] {
        std::fs::write(dir.path().join("store.new"), part).unwrap();
        let store = open(&path).unwrap();
        put(&store, "a").await;
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["store.redb"]);
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}

/// An older version of Airlock does not maintain the blocks.
#[tokio::test]
async fn counts_again_what_another_version_has_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = open(&path).unwrap();
    for number in 0..1000 {
        put(&store, &format!("{number:03}")).await;
    }
    drop(store);
    let entries: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("entries");
    let other = redb::Database::open(&path).unwrap();
    let transaction = other.begin_write().unwrap();
    transaction.open_table(entries).unwrap().retain(|key, _| key < "{a:file}300").unwrap();
    transaction.commit().unwrap();
    drop(other);
    let page = unlocked(|| open(&path)).page(&key(""), 295, 10).await.unwrap();
    assert_eq!((page.total, page.entries.len()), (300, 5));
}

#[tokio::test]
async fn a_killed_process_keeps_every_acknowledged_commit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "file::commits_until_killed", "--ignored", "--nocapture"])
        .env(CHILD_PATH, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut lines = lines.filter_map(|line| line.strip_prefix("committed ").map(str::to_owned));
    let mut acknowledged: Vec<String> = lines.by_ref().take(ACKNOWLEDGED).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    acknowledged.extend(lines);
    assert!(acknowledged.len() >= ACKNOWLEDGED);

    let store = open(&path).unwrap();
    for path in &acknowledged {
        let found = store.get(&[key(path)]).await.unwrap().remove(0);
        assert_eq!(found.expect("acknowledged but lost").value, *path);
    }
    put(&store, "after").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that the test above kills"]
async fn commits_until_killed() {
    let Some(path) = std::env::var_os(CHILD_PATH).map(PathBuf::from) else { return };
    let store = Arc::new(open(&path).unwrap());
    let committers: Vec<_> = (0..4)
        .map(|committer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for number in 0..1_000_000 {
                    let path = format!("{committer}/{number}");
                    put(&*store, &path).await;
                    println!("committed {path}");
                }
            })
        })
        .collect();
    for committer in committers {
        committer.await.unwrap();
    }
}

#[tokio::test]
async fn a_restored_file_is_the_one_of_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let (path, kept) = (dir.path().join("store.redb"), dir.path().join("kept.redb"));
    let first = open(&path).unwrap();
    for number in 0..300 {
        put(&first, &format!("list/{number:03}")).await;
    }
    let expires = ManualClock::new().millis() + 5000;
    let short = Batch::new().put_until(key("short"), "x", expires);
    assert_eq!(first.commit(short).await.unwrap(), Commit::Done);
    // The last version belongs to nothing any more, and must not be assigned again.
    put(&first, "gone").await;
    assert_eq!(first.commit(Batch::new().delete(key("gone"))).await.unwrap(), Commit::Done);
    let snapshot = first.snapshot().await.unwrap();
    let last_version = snapshot.last_version();
    let entries = all(snapshot).await;
    put(&first, "later").await;
    assert!(matches!(Restoring::start(&path).err(), Some(Error::Locked { .. })), "an open store is not replaced");
    drop(first);

    let restoring = unlocked(|| Restoring::start(&path));
    assert!(restoring.replaces());
    assert!(matches!(open(&path).err(), Some(Error::Locked { .. })), "a store that is replaced is not opened");
    entries.chunks(50).for_each(|part| restoring.add(part).unwrap());
    restoring.finish(last_version, &kept).unwrap();

    let (restored, clock) = (unlocked(|| open(&path)), ManualClock::new());
    let snapshot = restored.snapshot().await.unwrap();
    assert_eq!((snapshot.last_version(), all(snapshot).await), (last_version, entries));
    assert_eq!(restored.page(&key("list/"), 290, 20).await.unwrap().total, 300);
    put(&restored, "new").await;
    assert!(restored.get(&[key("new")]).await.unwrap()[0].as_ref().unwrap().version > last_version);
    drop(restored);
    clock.advance(Duration::from_secs(6));
    let later = unlocked(|| Embedded::open(&path, clock.for_store()));
    assert_eq!(later.get(&[key("short")]).await.unwrap(), [None]);
    let kept = unlocked(|| open(&kept));
    assert!(kept.get(&[key("later")]).await.unwrap()[0].is_some());
    assert!(!path.with_extension("restoring").exists());
}

#[tokio::test]
async fn a_restore_that_is_given_up_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let first = open(&path).unwrap();
    put(&first, "a").await;
    let entries = all(first.snapshot().await.unwrap()).await;
    drop(first);
    let restoring = unlocked(|| Restoring::start(&path));
    restoring.add(&entries).unwrap();
    drop(restoring);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(unlocked(|| open(&path)).get(&[key("a")]).await.unwrap()[0].is_some());
}
