//! The history of this process's handler.

use std::sync::Arc;

use anyhow::Context as _;
use history::History;

use super::context::Context;

/// Opens the history in its directory.
pub(super) fn open(context: &Context) -> anyhow::Result<Arc<History>> {
    let settings = context.settings.history.clone();
    let dir = settings.dir.clone().unwrap_or_else(|| context.settings.data_dir.join("history"));
    let history = History::open(&dir, settings, context.clock.clone(), &*context.random);
    history.with_context(|| format!("cannot open the history in {}", dir.display()))
}
