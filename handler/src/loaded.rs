//! Functions that are loaded: each set once, however many messages wait for it, and no more of them than fit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use runtime::{Asker, Busy, Failure, Functions, Kind, Pool, Sources, SourcesHash};
use tokio::sync::OnceCell;

use crate::config::Loading;

/// What came of loading one set. Whoever fills the cell loads; the others wait for that.
type Cell = Arc<OnceCell<Result<Functions, Failure>>>;

/// The loaded functions of many applications, those that were used longest ago the first to go.
pub(crate) struct Loaded {
    cells: Mutex<LruCache<SourcesHash, Cell>>,
    bytes_max: usize,
}

impl Loaded {
    /// None yet.
    pub(crate) fn new(bounds: &Loading) -> Self {
        Self { cells: Mutex::new(LruCache::new(bounds.sets_max)), bytes_max: bounds.bytes_max }
    }

    /// The functions of these texts, or why they cannot be used; loads them in `pool` when nobody did.
    pub(crate) async fn get(
        &self,
        asker: &Asker,
        sources: Sources,
        pool: &Pool,
    ) -> Result<Result<Functions, Failure>, Busy> {
        let hash = sources.hash();
        let cell = self.lock().get_or_insert(hash, Cell::default).clone();
        if let Some(known) = cell.get() {
            return Ok(known.clone());
        }
        let loaded = cell.get_or_try_init(|| pool.load(asker, sources)).await?.clone();
        self.settle(&hash, &loaded);
        Ok(loaded)
    }

    /// Forgets a failure that may not come again, and as many sets as it takes to fit.
    fn settle(&self, hash: &SourcesHash, loaded: &Result<Functions, Failure>) {
        let mut cells = self.lock();
        if loaded.as_ref().is_err_and(|failure| matches!(failure.kind, Kind::Time | Kind::Broken)) {
            cells.pop(hash);
        }
        let bytes = |cell: &Cell| cell.get().and_then(|loaded| loaded.as_ref().ok()).map_or(0, Functions::kept_bytes);
        let mut kept: usize = cells.iter().map(|(_, cell)| bytes(cell)).sum();
        while kept > self.bytes_max
            && let Some((_, cell)) = cells.pop_lru()
        {
            kept -= bytes(&cell);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<SourcesHash, Cell>> {
        // A panic elsewhere leaves a cache as good as before.
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
