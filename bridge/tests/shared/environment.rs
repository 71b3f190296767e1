//! The environment of a bridge in the tests of each network.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use bridge::Environment;
use runtime::{Engine, Pool};
use server::system::{OsRandom, SystemClock};

/// All tests share its threads and memory.
fn pool() -> Arc<Pool> {
    static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
    let start = || {
        let settings = runtime::Settings { workers: 2, ..runtime::Settings::default() };
        Arc::new(Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap())
    };
    POOL.get_or_init(start).clone()
}

/// Returns the environment of a bridge without history, with its state in `dir/directory`.
pub fn environment(dir: &Path, directory: &str) -> Environment {
    Environment {
        pool: pool(),
        clock: Arc::new(SystemClock),
        random: Arc::new(OsRandom),
        state_dir: dir.join(directory),
        history: None,
    }
}
