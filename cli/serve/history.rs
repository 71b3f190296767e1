//! The history of this process's handler.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use history::{Environment, History};
use runtime::LimitsByName;
use server::status::ErrorChain;

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

/// Writes the limits of functions beside the files, in the background: another process may be changing those.
pub(super) fn write_limits(history: Arc<History>, limits: BTreeMap<[u8; 8], LimitsByName>) {
    tokio::spawn(async move {
        if let Err(error) = history.write_limits(limits).await {
            let error = ErrorChain(&error);
            tracing::warn!(%error, "other programs do not find the limits of functions beside the files of history");
        }
    });
}
