//! What a bridge takes from its process.

pub(crate) mod state_dir;

use std::{path::PathBuf, sync::Arc};

use runtime::Pool;
use types::{Clock, Random};

/// What a bridge takes from its process.
pub struct Environment {
    /// Runs codecs.
    pub pool: Arc<Pool>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for a client id.
    pub random: Arc<dyn Random>,
    /// Where imported codecs are kept, and the client id; for this bridge alone.
    pub state_dir: PathBuf,
}
