//! Resources that a bridge takes from its process.

pub(crate) mod state_dir;

use std::{path::PathBuf, sync::Arc};

use runtime::Pool;
use types::{Clock, Random};

/// Resources that a bridge takes from its process.
#[derive(Clone)]
pub struct Environment {
    /// Runs codecs.
    pub pool: Arc<Pool>,
    /// Source of the time; tests control it.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for a client id.
    pub random: Arc<dyn Random>,
    /// Directory of this bridge alone, for imported codecs and its client id.
    pub state_dir: PathBuf,
    /// Settings of the history of what a bridge beside a network processes; none keeps nothing.
    pub history: Option<history::Settings>,
}
