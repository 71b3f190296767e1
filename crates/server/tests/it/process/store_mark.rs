//! Noticing that a store went back, on every kind of store.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use server::{
    audit::AuditLog,
    store_mark::{Durability, OlderStore, StoreMark, StoreMarkError},
    system::OsRandom,
};
use store::{Embedded, Redis, RedisSettings, Store};
use tempfile::TempDir;
use testing::{ManualClock, PATIENCE, RedisProcess, SmallDisk};

/// A store that can be backed up and restored while nobody has it open.
enum Disk {
    File(TempDir),
    Redis(Box<RedisProcess>),
}

/// A backup of a store.
enum Backup {
    File(Vec<u8>),
    Redis(TempDir),
}

impl Disk {
    fn each() -> Vec<Self> {
        let redis = RedisProcess::start().map(|redis| Self::Redis(Box::new(redis)));
        std::iter::once(Self::File(tempfile::tempdir().unwrap())).chain(redis).collect()
    }

    fn durability(&self) -> Durability {
        match self {
            Self::File(_) => Durability::Full,
            Self::Redis(_) => Durability::LosesLastSecond,
        }
    }

    async fn open(&self) -> Arc<dyn Store> {
        let clock = ManualClock::new().for_store();
        match self {
            Self::File(dir) => Arc::new(Embedded::open(&dir.path().join("store"), clock).unwrap()),
            Self::Redis(redis) => {
                let settings = RedisSettings { urls: vec![redis.url()], ..RedisSettings::default() };
                Arc::new(Redis::connect(&settings, clock).await.unwrap())
            }
        }
    }

    fn backup(&mut self) -> Backup {
        match self {
            Self::File(dir) => Backup::File(fs::read(dir.path().join("store")).unwrap()),
            Self::Redis(redis) => Backup::Redis(redis.backup()),
        }
    }

    fn restore(&mut self, backup: &Backup) {
        match (self, backup) {
            (Self::File(dir), Backup::File(bytes)) => fs::write(dir.path().join("store"), bytes).unwrap(),
            (Self::Redis(redis), Backup::Redis(backup)) => redis.restore(backup),
            _ => unreachable!("a backup of another kind"),
        }
    }

    async fn mark(&self, file: &Path, older: OlderStore) -> Result<StoreMark, StoreMarkError> {
        let store = (self.open().await, self.durability());
        StoreMark::open(file, store, &OsRandom, older).await
    }

    /// Runs an instance from its start to its end.
    async fn run(&self, file: &Path) -> Result<(), StoreMarkError> {
        self.run_if(file, OlderStore::Refuse).await
    }

    async fn run_if(&self, file: &Path, older: OlderStore) -> Result<(), StoreMarkError> {
        let mark = self.mark(file, older).await?;
        mark.advance().await
    }
}

/// The files of some instances.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn of(&self, instance: &str) -> PathBuf {
        self.0.path().join(instance)
    }
}

fn is_older(outcome: &Result<(), StoreMarkError>) -> bool {
    matches!(outcome, Err(StoreMarkError::Older { .. }))
}

#[tokio::test]
async fn a_restored_store_is_refused_until_it_is_accepted() {
    for mut disk in Disk::each() {
        let files = Files::new();
        let file = files.of("a");
        disk.run(&file).await.unwrap();
        let backup = disk.backup();
        disk.run(&file).await.unwrap();
        disk.restore(&backup);
        for _ in 0..2 {
            let outcome = disk.run(&file).await;
            assert!(is_older(&outcome), "{outcome:?}");
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains("--accept-older-store") && text.contains("valid again"), "{text}");
        }
        disk.run_if(&file, OlderStore::Accept).await.unwrap();
        disk.run(&file).await.unwrap();
        disk.restore(&backup);
        assert!(is_older(&disk.run(&file).await), "it is noticed again");
    }
}

#[tokio::test]
async fn an_emptied_store_is_refused() {
    for mut disk in Disk::each() {
        let files = Files::new();
        let empty = {
            drop(disk.open().await);
            disk.backup()
        };
        disk.run(&files.of("a")).await.unwrap();
        disk.restore(&empty);
        assert!(is_older(&disk.run(&files.of("a")).await));
    }
}

#[tokio::test]
async fn an_instance_that_starts_first_hides_nothing_from_the_others() {
    for mut disk in Disk::each() {
        let files = Files::new();
        let (a, b) = (files.of("a"), files.of("b"));
        disk.run(&a).await.unwrap();
        disk.run(&b).await.unwrap();
        let backup = disk.backup();
        disk.run(&a).await.unwrap();
        disk.restore(&backup);
        for _ in 0..10 {
            disk.run(&b).await.unwrap();
        }
        assert!(is_older(&disk.run(&a).await));
    }
}

#[tokio::test]
async fn a_lost_file_locks_nobody_out_and_a_damaged_one_says_what_to_do() {
    for disk in Disk::each() {
        let files = Files::new();
        let file = files.of("a");
        disk.run(&file).await.unwrap();
        fs::remove_file(&file).unwrap();
        disk.run(&file).await.unwrap();
        for damage in ["", "{", "7"] {
            fs::write(&file, damage).unwrap();
            let text = disk.run(&file).await.unwrap_err().to_string();
            assert!(text.contains("is damaged") && text.contains("delete it and start again"), "{text}");
        }
    }
}

/// An instance that runs, and what its file says.
struct Running {
    dir: TempDir,
    audit: AuditLog,
    _task: tokio::task::JoinHandle<StoreMarkError>,
}

impl Running {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(Embedded::in_memory(ManualClock::new().for_store()).unwrap());
        let audit = AuditLog::without_file(ManualClock::new());
        let file = dir.path().join("mark");
        let mark = StoreMark::open(&file, (store, Durability::Full), &OsRandom, OlderStore::Refuse);
        let mark = mark.await.unwrap();
        mark.advance().await.unwrap();
        let runs = audit.clone();
        Self { dir, audit, _task: tokio::spawn(async move { mark.run(runs).await }) }
    }

    fn count(&self) -> u64 {
        let text = fs::read(self.dir.path().join("mark")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()["count"].as_u64().unwrap()
    }

    /// Waits until the file has a count, at most [`PATIENCE`] of real time.
    async fn reaches(&self, count: u64) {
        let started = Instant::now();
        while self.count() < count {
            assert!(started.elapsed() < PATIENCE, "the count is still {}", self.count());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn a_change_is_marked_without_waiting_for_the_interval() {
    let running = Running::start().await;
    assert_eq!(running.count(), 1);
    running.audit.change("access key deleted", &"alice", &"my-app/key").unwrap().done();
    running.reaches(2).await;
}

#[tokio::test(start_paused = true)]
async fn the_mark_advances_at_intervals_without_a_change() {
    let running = Running::start().await;
    running.reaches(4).await;
}

#[tokio::test]
async fn a_redis_that_goes_back_while_it_is_in_use_is_noticed_and_stays_refused() {
    let Some(redis) = RedisProcess::start() else { return };
    let (mut disk, files) = (Disk::Redis(Box::new(redis)), Files::new());
    let file = files.of("a");
    disk.run(&file).await.unwrap();
    let backup = disk.backup();
    let mark = disk.mark(&file, OlderStore::Refuse).await.unwrap();
    mark.advance().await.unwrap();
    let audit = AuditLog::without_file(ManualClock::new());
    disk.restore(&backup);
    let running = tokio::time::timeout(PATIENCE, mark.run(audit));
    let error = running.await.expect("it is noticed without a change");
    assert!(matches!(error, StoreMarkError::Older { .. }), "{error}");
    assert!(is_older(&mark.advance().await), "the end of the process does not heal it");
    assert!(is_older(&disk.run(&file).await), "a restart does not, either");
}

#[tokio::test(start_paused = true)]
async fn a_change_on_the_embedded_store_is_marked_at_once() {
    let running = Running::start().await;
    running.audit.change("access key deleted", &"alice", &"my-app/key").unwrap().done();
    let started = Instant::now();
    while running.count() < 2 {
        assert!(started.elapsed() < PATIENCE, "it waits, although no time passes here");
        // Unlike sleeping, this does not let the time of the test pass.
        tokio::task::yield_now().await;
    }
}

/// A clock that was wrong for a moment, and an installation that was off for longer than a year.
#[tokio::test]
async fn a_mark_does_not_age() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let (file, path) = (dir.path().join("mark"), dir.path().join("store"));
    let start = async || {
        let store: Arc<dyn Store> = Arc::new(Embedded::open(&path, clock.for_store()).unwrap());
        let mark = StoreMark::open(&file, (store, Durability::Full), &OsRandom, OlderStore::Refuse).await?;
        mark.advance().await
    };
    start().await.unwrap();
    clock.jump(Duration::from_secs(401 * 24 * 3600));
    start().await.unwrap();
    clock.set_back(Duration::from_secs(401 * 24 * 3600));
    start().await.unwrap();
    clock.advance(Duration::from_secs(401 * 24 * 3600));
    start().await.unwrap();
}

#[tokio::test]
async fn a_full_disk_does_not_keep_an_instance_from_starting() {
    let Some(disk) = SmallDisk::mount() else { return };
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(ManualClock::new().for_store()).unwrap());
    let start = async || {
        let store = (store.clone(), Durability::LosesLastSecond);
        StoreMark::open(&disk.path().join("mark"), store, &OsRandom, OlderStore::Refuse).await?.start().await
    };
    start().await.unwrap();
    let before = fs::read(disk.path().join("mark")).unwrap();
    disk.fill();
    start().await.unwrap();
    assert_eq!(fs::read(disk.path().join("mark")).unwrap(), before, "the older mark is kept");
    fs::write(disk.path().join("mark"), "").unwrap();
    assert!(start().await.is_err(), "a damaged mark is refused all the same");
}
