//! Whether this process is ready: the checks that it registered, and whether it is on its way out.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::{FutureExt, future::BoxFuture};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// How long a check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The health of this process; clones are the same.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<Mutex<BTreeMap<&'static str, Check>>>,
    draining: CancellationToken,
}

/// What the checks said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `ready`, `failing` or `draining`.
    status: &'static str,
    /// `ok`, or what is wrong, for each check.
    checks: BTreeMap<&'static str, String>,
}

impl Health {
    /// Adds a check under a name, or replaces the one of that name.
    ///
    /// An error's text is shown to whoever may see the health: no secrets. After 2 seconds a check has failed.
    pub fn add<F>(&self, name: &'static str, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || check().boxed());
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).insert(name, check);
    }

    /// Not ready from now on: load balancers look elsewhere while what was accepted is finished.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Whether this process is on its way out.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Asks every check, all at once.
    pub async fn report(&self) -> Report {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let asked = checks.into_iter().map(async |(name, check)| (name, ask(&check).await));
        let checks: BTreeMap<_, _> = futures::future::join_all(asked).await.into_iter().collect();
        let status = match checks.values().all(|said| said == "ok") {
            _ if self.is_draining() => "draining",
            true => "ready",
            false => "failing",
        };
        Report { status, checks }
    }
}

impl Report {
    /// Whether new work may come.
    pub fn is_ready(&self) -> bool {
        self.status == "ready"
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

async fn ask(check: &Check) -> String {
    match tokio::time::timeout(CHECK_TIMEOUT, check()).await {
        Ok(Ok(())) => "ok".to_owned(),
        Ok(Err(reason)) => reason,
        Err(_) => format!("no answer within {} s", CHECK_TIMEOUT.as_secs()),
    }
}
