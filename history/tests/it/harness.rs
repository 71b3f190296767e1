//! A history in a directory of its own, and records for it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::TryStreamExt;
use history::{Environment, History, Kind, Loss, NewRecord, Outcome, Query, Record, RecordId, Settings};
use tempfile::TempDir;
pub(crate) use testing::without_checksums;
use testing::{CountingRandom, ManualClock};
use types::{AppId, Clock, DevId};

pub(crate) struct Harness {
    pub(crate) dir: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) random: CountingRandom,
    pub(crate) settings: Settings,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let settings = Settings { wait_ms_max: 60_000, ..settings };
        Self {
            dir: tempfile::tempdir().unwrap(),
            clock: ManualClock::new(),
            random: CountingRandom::default(),
            settings,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn open(&self) -> Arc<History> {
        let environment = Environment {
            clock: self.clock.clone(),
            random: &self.random,
            // Those of `ann-1` and `ann-2` are the same.
            owner_of: Arc::new(|app_id| app_id.as_str().split('-').next().unwrap().to_owned()),
        };
        History::open(self.path(), self.settings.clone(), environment).unwrap()
    }

    /// Appends an uplink of this device with this counter, a second after the one before.
    pub(crate) async fn uplink(&self, history: &History, dev_id: &str, counter: u32) -> RecordId {
        self.uplink_of(history, &app(), dev_id, counter).await
    }

    /// The same for another application.
    pub(crate) async fn uplink_of(&self, history: &History, app_id: &AppId, dev_id: &str, counter: u32) -> RecordId {
        self.clock.advance(Duration::from_secs(1));
        let dev_id = dev(dev_id);
        let result = format!(r#"{{"level":{counter},"name":"{dev_id}"}}"#);
        let new = NewRecord {
            counter,
            port: (counter % 3) as u8,
            payload: &counter.to_le_bytes(),
            outcome: Outcome::Decoded,
            result: &result,
            ..NewRecord::new(app_id, &dev_id, &Kind::Uplink, self.clock.now())
        };
        kept(history.append(&new).await)
    }
}

pub(crate) fn app() -> AppId {
    "my-app".parse().unwrap()
}

pub(crate) fn dev(id: &str) -> DevId {
    id.parse().unwrap()
}

pub(crate) fn kept(kept: Result<RecordId, Loss>) -> RecordId {
    match kept {
        Ok(id) => id,
        Err(loss) => panic!("not kept: {}", loss.name()),
    }
}

/// Everything of the application, newest first.
pub(crate) fn everything() -> Query {
    Query::of(app())
}

/// All records that are wanted.
pub(crate) async fn all(history: &History, query: Query) -> Vec<Record> {
    history.batches(query).map_ok(|page| page.records).try_concat().await.unwrap()
}

/// The counters of all records that are wanted.
pub(crate) async fn counters(history: &History, query: Query) -> Vec<u32> {
    all(history, query).await.iter().map(|record| record.counter).collect()
}

/// The Parquet files of the application, in order.
pub(crate) fn files(harness: &Harness) -> Vec<PathBuf> {
    files_of(harness, &app())
}

/// The same of another application.
pub(crate) fn files_of(harness: &Harness, app_id: &AppId) -> Vec<PathBuf> {
    let Ok(days) = fs::read_dir(harness.path().join(format!("app={app_id}"))) else { return Vec::new() };
    let files = days.flat_map(|day| fs::read_dir(day.unwrap().path()).unwrap());
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    paths.sort();
    paths
}

/// Changes the first page of a file, which has no checksums then, so that it can be opened, but not read.
pub(crate) fn damage_page(path: &Path) {
    let mut bytes = without_checksums(&fs::read(path).unwrap());
    bytes[4..20].fill(0xff);
    fs::write(path, bytes).unwrap();
}

/// The counters of a page, and the files that it leaves out.
pub(crate) async fn page(history: &History, query: Query) -> (Vec<u32>, Vec<PathBuf>) {
    let page = history.query(query).await.unwrap();
    let counters = page.records.iter().map(|record| record.counter).collect();
    (counters, page.skipped.into_iter().map(|skipped| skipped.path).collect())
}

/// The segments of the tail.
pub(crate) fn segments(harness: &Harness) -> Vec<PathBuf> {
    let owners = fs::read_dir(harness.path().join("tail")).unwrap();
    let files = owners.flat_map(|owner| fs::read_dir(owner.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some()).collect()
}
