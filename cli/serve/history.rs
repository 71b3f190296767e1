//! The history of this process's handler.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use history::{Environment, History};

use super::context::Context;
use crate::settings::Settings;

/// Returns the directory of history.
pub(super) fn history_dir(settings: &Settings) -> PathBuf {
    settings.history.dir.clone().unwrap_or_else(|| settings.data_dir.join("history"))
}

/// Opens the history in its directory.
pub(super) fn open(context: &Context) -> anyhow::Result<Arc<History>> {
    let settings = context.settings.history.clone();
    let dir = history_dir(&context.settings);
    let owners = context.owners.clone();
    let environment = Environment {
        clock: context.clock.clone(),
        random: &*context.random,
        owner_of: Arc::new(move |app_id| owners.last(app_id).to_string()),
    };
    let history = History::open(&dir, settings, environment);
    history.with_context(|| format!("cannot open the history in {}", dir.display()))
}
