//! Functions that are loaded: each set once, however many messages wait for it, and no more of them than fit.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lru::LruCache;
use runtime::{Asker, Busy, Failure, Functions, Kind, Limits, LimitsHash, Load, Pool, SourcesHash};
use tokio::sync::OnceCell;
use types::AppId;

use crate::{
    Error,
    application::Application,
    settings::{Loading, Settings},
};

/// What came of loading one set. Whoever fills the cell loads; the others wait for that.
type Cell = Arc<OnceCell<Result<Functions, Failure>>>;

/// The most sets that are kept because somebody tried them.
const TRIED_SETS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Which part of the memory of sets they may take.
const TRIED_PART: usize = 8;

/// The loaded functions of many applications, those that were used longest ago the first to go.
pub(crate) struct Loaded {
    sets: Mutex<Sets>,
    bytes_max: usize,
    /// Whether what is loaded is kept on disk too.
    is_kept: bool,
    /// Of the applications that have limits of their own.
    limits: BTreeMap<AppId, NamedLimits>,
    /// Of all others.
    limits_of_all: NamedLimits,
}

/// What names a set: its texts, and the limits that it was loaded within.
type Name = (SourcesHash, LimitsHash);

/// Limits and what names them, which takes too long to be found for every message.
struct NamedLimits {
    limits: Arc<Limits>,
    hash: LimitsHash,
}

#[derive(Default)]
struct Set {
    cell: Cell,
    /// What it takes, once it is loaded and counted.
    bytes: usize,
}

struct Sets {
    kept: LruCache<Name, Set>,
    /// What all of them take together.
    bytes: usize,
}

impl Loaded {
    /// Room for what messages meet. An error is a limit that there is not.
    pub(crate) fn new(settings: &Settings, limits_of_all: &Arc<Limits>) -> Result<Self, Error> {
        Self::with_room(settings.loading, true, settings, limits_of_all)
    }

    /// A little room for what is only tried, so that no number of trials pushes out what messages meet.
    pub(crate) fn tried(settings: &Settings, limits_of_all: &Arc<Limits>) -> Result<Self, Error> {
        let Loading { sets_max, bytes_max } = settings.loading;
        let room = Loading { sets_max: sets_max.min(TRIED_SETS_MAX), bytes_max: bytes_max / TRIED_PART };
        Self::with_room(room, false, settings, limits_of_all)
    }

    fn with_room(
        room: Loading,
        is_kept: bool,
        settings: &Settings,
        limits_of_all: &Arc<Limits>,
    ) -> Result<Self, Error> {
        let change = |(app_id, change): (&AppId, &runtime::LimitsChange)| {
            Ok::<_, Error>((app_id.clone(), NamedLimits::new(Arc::new(change.apply(limits_of_all)?))))
        };
        Ok(Self {
            sets: Mutex::new(Sets { kept: LruCache::new(room.sets_max), bytes: 0 }),
            bytes_max: room.bytes_max,
            is_kept,
            limits: settings.limits.iter().map(change).collect::<Result<_, _>>()?,
            limits_of_all: NamedLimits::new(limits_of_all.clone()),
        })
    }

    /// The functions of an application by the hash of their texts, or why they cannot be used; none when nobody has
    /// loaded them.
    pub(crate) fn find(&self, app_id: &AppId, hash: SourcesHash) -> Option<Result<Functions, Failure>> {
        let name = (hash, self.limits(app_id).hash);
        self.lock().kept.get(&name)?.cell.get().cloned()
    }

    /// The functions of an application, or why they cannot be used; loads them in `pool` when nobody did.
    pub(crate) async fn get(
        &self,
        asker: &Asker,
        application: &Application,
        pool: &Pool,
    ) -> Result<Result<Functions, Failure>, Busy> {
        let NamedLimits { limits, hash } = self.limits(&application.app_id);
        let sources = application.sources();
        let name = (sources.hash(), *hash);
        let cell = self.lock().cell(name);
        if let Some(known) = cell.get() {
            return Ok(known.clone());
        }
        let mut is_mine = false;
        let load = || {
            is_mine = true;
            pool.load(asker, Load { sources, limits: limits.clone(), is_kept: self.is_kept })
        };
        let loaded = cell.get_or_try_init(load).await?.clone();
        if is_mine {
            self.lock().settle(&name, &cell, self.bytes_max);
        }
        Ok(loaded)
    }

    /// What the functions of an application may use.
    fn limits(&self, app_id: &AppId) -> &NamedLimits {
        self.limits.get(app_id).unwrap_or(&self.limits_of_all)
    }

    fn lock(&self) -> MutexGuard<'_, Sets> {
        // A panic elsewhere leaves a cache as good as before.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NamedLimits {
    fn new(limits: Arc<Limits>) -> Self {
        Self { hash: LimitsHash::of(&limits), limits }
    }
}

impl Sets {
    fn cell(&mut self, name: Name) -> Cell {
        if let Some(set) = self.kept.get(&name) {
            return set.cell.clone();
        }
        let set = Set::default();
        let cell = set.cell.clone();
        let gone = self.kept.push(name, set);
        self.bytes -= gone.map_or(0, |(_, gone)| gone.bytes);
        cell
    }

    /// Counts what was just loaded, and forgets a failure that may not come again and as many sets as it takes to fit.
    fn settle(&mut self, name: &Name, cell: &Cell, bytes_max: usize) {
        // It may have had to go while it was loaded.
        let set = self.kept.peek_mut(name).filter(|set| Arc::ptr_eq(&set.cell, cell));
        match (set, cell.get()) {
            (Some(set), Some(Ok(functions))) => {
                set.bytes = functions.kept_bytes();
                self.bytes += set.bytes;
            }
            (Some(_), Some(Err(failure))) if matches!(failure.kind, Kind::Time | Kind::Broken) => {
                self.kept.pop(name);
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
