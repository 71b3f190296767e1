//! A cache of loaded functions. Each set is loaded once, however many messages wait for it; the least recently used
//! ones make room for others. An application that changes its functions replaces the set that it loaded before, so that
//! it cannot fill the cache; those of its candidate have a group of their own. For dry runs it has a few sets, because
//! stored uplinks run again with those that they had, which may differ from one uplink to the next. Sets that cannot be
//! loaded count, too.
//!
//! Not `moka`: a set's size is known only after it was loaded, and a load that fails for a reason that may pass must
//! not be remembered, while other failures must.

use std::{
    collections::{BTreeMap, HashMap},
    num::NonZeroUsize,
    sync::Arc,
};

use lru::LruCache;
use parking_lot::Mutex;
use runtime::{Busy, Failure, Functions, Limits, LimitsHash, LoadRequest, Pool, SourcesHash, Tenant};
use server::usage::Usage;
use tokio::sync::OnceCell;
use types::AppId;

use super::limits::HashedLimits;
use crate::{
    Error,
    registry::application::{Application, ApplicationSummary},
    settings::{Loading, Settings},
};

/// The result of loading a set. One task loads, the others wait for it.
type Cell = Arc<OnceCell<Result<Functions, Failure>>>;

/// Identifies a set: its sources, and the limits it was loaded with.
type CacheKey = (SourcesHash, LimitsHash);

const DRY_RUN_SETS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Dry runs get this fraction of the memory for sets.
const DRY_RUN_MEMORY_DIVISOR: usize = 8;
/// Maximum number of sets of one group for dry runs.
const DRY_RUN_GROUP_SETS_MAX: usize = 8;
/// The older sets of a group stay while all of it take at most this fraction of the memory for sets.
const GROUP_MEMORY_DIVISOR: usize = 16;

pub(super) struct FunctionsCache {
    sets: Mutex<Sets>,
    bytes_max: usize,
    /// True if loaded functions are also kept on disk.
    is_kept: bool,
    /// The limits of applications that have their own.
    limits: BTreeMap<AppId, HashedLimits>,
    default_limits: HashedLimits,
}

#[derive(Default)]
struct Set {
    cell: Cell,
    /// Properties of the set after its load; none until then.
    loaded: Option<LoadedSet>,
    /// The number of the last use, which grows from one use of any set to the next.
    used: u64,
}

struct LoadedSet {
    /// The memory that it takes; none if it cannot be loaded.
    bytes: usize,
    /// Application that loaded the set. Others may use it too.
    group: EvictionGroup,
}

/// Sets that make room for each other.
#[derive(Clone, PartialEq, Eq, Hash)]
struct EvictionGroup {
    app_id: AppId,
    is_candidate: bool,
    /// True for live messages if the set cannot be loaded: a change that is refused must not evict what is live.
    is_refused: bool,
}

struct Sets {
    lru: LruCache<CacheKey, Set>,
    bytes: usize,
    /// The cached sets of each group.
    by_group: HashMap<EvictionGroup, Vec<CacheKey>>,
    /// Number of uses of all sets.
    uses: u64,
    /// Maximum number of sets of a group.
    group_sets_max: usize,
}

impl FunctionsCache {
    /// The cache for live messages. Fails if the settings have a limit that does not exist.
    pub(super) fn new(settings: &Settings, default_limits: &Arc<Limits>) -> Result<Self, Error> {
        Self::with_room(settings.loading, true, settings, default_limits)
    }

    /// A small cache for dry runs, so that these never evict what live messages need.
    pub(super) fn for_dry_runs(settings: &Settings, default_limits: &Arc<Limits>) -> Result<Self, Error> {
        let Loading { sets_max, bytes_max } = settings.loading;
        let room = Loading { sets_max: sets_max.min(DRY_RUN_SETS_MAX), bytes_max: bytes_max / DRY_RUN_MEMORY_DIVISOR };
        Self::with_room(room, false, settings, default_limits)
    }

    fn with_room(
        room: Loading,
        is_kept: bool,
        settings: &Settings,
        default_limits: &Arc<Limits>,
    ) -> Result<Self, Error> {
        let change = |(app_id, change): (&AppId, &runtime::LimitOverrides)| {
            Ok::<_, Error>((app_id.clone(), HashedLimits::new(Arc::new(change.apply(default_limits)?))))
        };
        let group_sets_max = if is_kept { 1 } else { DRY_RUN_GROUP_SETS_MAX };
        let lru = LruCache::new(room.sets_max);
        Ok(Self {
            sets: Mutex::new(Sets { lru, bytes: 0, by_group: HashMap::new(), uses: 0, group_sets_max }),
            bytes_max: room.bytes_max,
            is_kept,
            limits: settings.sandbox_limits.iter().map(change).collect::<Result<_, _>>()?,
            default_limits: HashedLimits::new(default_limits.clone()),
        })
    }

    /// The functions of an application, or why they cannot be used; none if they are not loaded.
    pub(super) fn get(&self, application: &ApplicationSummary) -> Option<Result<Functions, Failure>> {
        self.get_within(application, self.limits(&application.app_id))
    }

    /// The same with other limits than those of the application.
    pub(super) fn get_within(
        &self,
        application: &ApplicationSummary,
        limits: &HashedLimits,
    ) -> Option<Result<Functions, Failure>> {
        let key = (application.functions_hash, limits.hash);
        self.sets.lock().touch(&key)?.cell.get().cloned()
    }

    /// The functions of an application with these limits, or why they cannot be used; loads them in `pool` if nobody
    /// has, at the expense of `usage`.
    pub(super) async fn get_or_load(
        &self,
        tenant: &Tenant,
        (application, limits): (&Application, &HashedLimits),
        pool: &Pool,
        usage: &Usage,
    ) -> Result<Result<Functions, Failure>, Busy> {
        let summary = application.summary();
        let HashedLimits { limits, hash } = limits;
        let key = (summary.functions_hash, *hash);
        let cell = self.sets.lock().cell(key);
        if let Some(loaded) = cell.get() {
            return Ok(loaded.clone());
        }
        let mut is_mine = false;
        let load = || {
            is_mine = true;
            let sources = application.sources().clone();
            pool.load(tenant, LoadRequest { sources, hash: key.0, limits: limits.clone(), is_cached: self.is_kept })
        };
        let loaded = cell.get_or_try_init(load).await?.clone();
        if is_mine {
            // As the queue of the sandbox counts it.
            usage.add_fuel(loaded.as_ref().map_or(limits.load_fuel, Functions::fuel_spent));
            let is_refused = self.is_kept && loaded.is_err();
            let group =
                EvictionGroup { app_id: summary.app_id.clone(), is_candidate: summary.is_candidate, is_refused };
            self.sets.lock().finish_load(&key, &cell, &group, self.bytes_max);
        }
        Ok(loaded)
    }

    /// The limits of all applications.
    pub(super) fn all_limits(&self) -> impl Iterator<Item = &HashedLimits> {
        self.limits.values().chain([&self.default_limits])
    }

    /// The limits of an application.
    pub(super) fn limits(&self, app_id: &AppId) -> &HashedLimits {
        self.limits.get(app_id).unwrap_or(&self.default_limits)
    }
}

impl Sets {
    /// A cached set, which is now the last one that was used.
    fn touch(&mut self, key: &CacheKey) -> Option<&Set> {
        let set = self.lru.get_mut(key)?;
        self.uses += 1;
        set.used = self.uses;
        Some(set)
    }

    /// The cell of a set, which is added if it is missing.
    fn cell(&mut self, key: CacheKey) -> Cell {
        if let Some(set) = self.touch(&key) {
            return set.cell.clone();
        }
        let set = Set::default();
        let cell = set.cell.clone();
        if let Some((key, evicted)) = self.lru.push(key, set) {
            self.forget(&key, evicted);
        }
        cell
    }

    /// Counts the memory of a set that has just been loaded for a group, and evicts others until all fit. Forgets a
    /// failure that may not happen again.
    fn finish_load(&mut self, key: &CacheKey, cell: &Cell, group: &EvictionGroup, bytes_max: usize) {
        // The set may have been evicted while it was loading.
        let set = self.lru.peek_mut(key).filter(|set| Arc::ptr_eq(&set.cell, cell));
        let (Some(set), Some(loaded)) = (set, cell.get()) else { return };
        let bytes = match loaded {
            Ok(functions) => functions.idle_bytes(),
            Err(failure) if failure.may_pass() => {
                self.lru.pop(key);
                return;
            }
            Err(_) => 0,
        };
        set.loaded = Some(LoadedSet { bytes, group: group.clone() });
        self.uses += 1;
        set.used = self.uses;
        self.bytes += bytes;
        self.by_group.entry(group.clone()).or_default().push(*key);
        self.bound(group, key, bytes_max / GROUP_MEMORY_DIVISOR);
        while self.bytes > bytes_max
            && let Some((key, evicted)) = self.lru.pop_lru()
        {
            self.forget(&key, evicted);
        }
    }

    /// Evicts what a group has too much of, the least recently used first, but never the newest set.
    fn bound(&mut self, group: &EvictionGroup, newest: &CacheKey, bytes_max: usize) {
        while let Some(key) = self.superfluous(group, newest, bytes_max)
            && let Some(evicted) = self.lru.pop(&key)
        {
            self.forget(&key, evicted);
        }
    }

    /// The set that a group has to lose, if it has too many or they take too much memory.
    fn superfluous(&self, group: &EvictionGroup, newest: &CacheKey, bytes_max: usize) -> Option<CacheKey> {
        let keys = self.by_group.get(group)?;
        let loaded = keys.iter().filter_map(|key| self.lru.peek(key)?.loaded.as_ref());
        let bytes: usize = loaded.map(|loaded| loaded.bytes).sum();
        if keys.len() <= self.group_sets_max && bytes <= bytes_max {
            return None;
        }
        let older = keys.iter().filter(|key| *key != newest);
        older.min_by_key(|key| self.lru.peek(*key).map(|set| set.used)).copied()
    }

    /// Forgets what was known about a set that is no longer cached.
    fn forget(&mut self, key: &CacheKey, evicted: Set) {
        let Some(LoadedSet { bytes, group }) = evicted.loaded else { return };
        self.bytes -= bytes;
        let Some(loaded) = self.by_group.get_mut(&group) else { return };
        loaded.retain(|other| other != key);
        if loaded.is_empty() {
            self.by_group.remove(&group);
        }
    }
}
