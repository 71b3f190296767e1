//! Starts the sandboxes of a process.

use std::sync::Arc;

use runtime::{Engine, Pool, Settings};

/// Starts a worker pool; compiling the guest takes seconds on the first start.
pub(crate) async fn start(settings: &Settings) -> anyhow::Result<Pool> {
    let settings = settings.clone();
    let engine = tokio::task::spawn_blocking(move || Engine::new(&settings)).await??;
    Ok(Pool::start(Arc::new(engine))?)
}
