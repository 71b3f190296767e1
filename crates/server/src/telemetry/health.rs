//! Readiness of the process: the checks that its parts registered, and whether it is shutting down.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// The time limit of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// The result of a check that does not fail.
const OK: &str = "ok";

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The health of this process; clones share their state.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<Mutex<BTreeMap<&'static str, Check>>>,
    draining: CancellationToken,
    /// Reason why the process must be started again.
    failed: Arc<OnceLock<String>>,
}

/// The results of the checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `ready`, `failing` or `draining`.
    status: &'static str,
    /// `ok` or the error of each check.
    checks: BTreeMap<&'static str, String>,
}

impl Health {
    /// Adds a check, or replaces the one with this name.
    ///
    /// Its error text is public, so keep secrets out. A check fails after 2 seconds.
    pub fn add<F>(&self, name: &'static str, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || check().boxed());
        self.checks.lock().insert(name, check);
    }

    /// Reports not ready from now on, so that load balancers stop sending requests while accepted ones finish.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Reports that the process can no longer work, and must be started again. The text is public.
    pub fn fail(&self, reason: String) {
        // The first reason is the cause of the others.
        _ = self.failed.set(reason);
    }

    /// Returns the reason why the process must be started again, if it must.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Runs all checks at once.
    pub async fn report(&self) -> Report {
        let checks = self.checks.lock().clone();
        let running = checks.into_iter().map(async |(name, check)| (name, run(&check).await));
        let checks: BTreeMap<_, _> = futures::future::join_all(running).await.into_iter().collect();
        let status = match checks.values().all(|result| result == OK) {
            _ if self.is_draining() => "draining",
            true => "ready",
            false => "failing",
        };
        Report { status, checks }
    }
}

impl Report {
    /// Returns true if the process accepts new work.
    pub fn is_ready(&self) -> bool {
        self.status == "ready"
    }

    /// Each check with its name, and its error if it fails.
    pub fn checks(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        self.checks.iter().map(|(name, result)| (*name, Some(result.as_str()).filter(|result| *result != OK)))
    }
}

impl IntoResponse for Report {
    fn into_response(self) -> Response {
        let status = if self.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, Json(self)).into_response()
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Health").field("draining", &self.is_draining()).finish_non_exhaustive()
    }
}

async fn run(check: &Check) -> String {
    match tokio::time::timeout(CHECK_TIMEOUT, check()).await {
        Ok(Ok(())) => OK.to_owned(),
        Ok(Err(reason)) => reason,
        Err(_) => format!("no response within {} s", CHECK_TIMEOUT.as_secs()),
    }
}
