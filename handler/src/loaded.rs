//! Functions that are loaded: each set once, however many messages wait for it, and no more of them than fit.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lru::LruCache;
use runtime::{Asker, Busy, Failure, Functions, Kind, Limits, Pool, Sources, SourcesHash};
use tokio::sync::OnceCell;
use types::AppId;

use crate::{Error, config::Settings};

/// What came of loading one set. Whoever fills the cell loads; the others wait for that.
type Cell = Arc<OnceCell<Result<Functions, Failure>>>;

/// The loaded functions of many applications, those that were used longest ago the first to go.
pub(crate) struct Loaded {
    sets: Mutex<Sets>,
    bytes_max: usize,
    /// Of the applications that have limits of their own.
    limits: BTreeMap<AppId, Arc<Limits>>,
    /// Of all others.
    limits_of_all: Arc<Limits>,
}

#[derive(Default)]
struct Set {
    cell: Cell,
    /// What it takes, once it is loaded and counted.
    bytes: usize,
}

struct Sets {
    kept: LruCache<SourcesHash, Set>,
    /// What all of them take together.
    bytes: usize,
}

impl Loaded {
    /// None yet. An error is a limit that there is not.
    pub(crate) fn new(settings: &Settings, limits_of_all: &Arc<Limits>) -> Result<Self, Error> {
        let change = |(app_id, change): (&AppId, &runtime::LimitsChange)| {
            Ok::<_, Error>((app_id.clone(), Arc::new(change.apply(limits_of_all)?)))
        };
        Ok(Self {
            sets: Mutex::new(Sets { kept: LruCache::new(settings.loading.sets_max), bytes: 0 }),
            bytes_max: settings.loading.bytes_max,
            limits: settings.limits.iter().map(change).collect::<Result<_, _>>()?,
            limits_of_all: limits_of_all.clone(),
        })
    }

    /// What the functions of an application may use.
    pub(crate) fn limits(&self, app_id: &AppId) -> &Arc<Limits> {
        self.limits.get(app_id).unwrap_or(&self.limits_of_all)
    }

    /// The functions of these texts, or why they cannot be used; loads them in `pool` when nobody did.
    pub(crate) async fn get(
        &self,
        asker: &Asker,
        sources: Sources,
        limits: &Arc<Limits>,
        pool: &Pool,
    ) -> Result<Result<Functions, Failure>, Busy> {
        let hash = sources.hash_within(limits);
        let cell = self.lock().cell(hash);
        if let Some(known) = cell.get() {
            return Ok(known.clone());
        }
        let mut is_mine = false;
        let load = || {
            is_mine = true;
            pool.load(asker, sources, limits.clone())
        };
        let loaded = cell.get_or_try_init(load).await?.clone();
        if is_mine {
            self.lock().settle(hash, &cell, self.bytes_max);
        }
        Ok(loaded)
    }

    fn lock(&self) -> MutexGuard<'_, Sets> {
        // A panic elsewhere leaves a cache as good as before.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sets {
    fn cell(&mut self, hash: SourcesHash) -> Cell {
        if let Some(set) = self.kept.get(&hash) {
            return set.cell.clone();
        }
        let set = Set::default();
        let cell = set.cell.clone();
        let gone = self.kept.push(hash, set);
        self.bytes -= gone.map_or(0, |(_, gone)| gone.bytes);
        cell
    }

    /// Counts what was just loaded, and forgets a failure that may not come again and as many sets as it takes to fit.
    fn settle(&mut self, hash: SourcesHash, cell: &Cell, bytes_max: usize) {
        // It may have had to go while it was loaded.
        let set = self.kept.peek_mut(&hash).filter(|set| Arc::ptr_eq(&set.cell, cell));
        match (set, cell.get()) {
            (Some(set), Some(Ok(functions))) => {
                set.bytes = functions.kept_bytes();
                self.bytes += set.bytes;
            }
            (Some(_), Some(Err(failure))) if matches!(failure.kind, Kind::Time | Kind::Broken) => {
                self.kept.pop(&hash);
            }
            _ => {}
        }
        while self.bytes > bytes_max
            && let Some((_, gone)) = self.kept.pop_lru()
        {
            self.bytes -= gone.bytes;
        }
    }
}
