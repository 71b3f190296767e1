//! The state of this process for the console's pages of operators.

mod counters;
mod network;
mod owners;
mod ranking;
mod samples;

use std::{path::PathBuf, sync::Arc};

use account::Account;
use console::{
    AuditTail, Check, Count, FunctionRanking, NetworkTrial, NetworksStatus, NewNetwork, OwnerUse, ServerStatus,
    StatusSource, TrialCheck,
};
use futures::future::BoxFuture;
use handler::uplink::RunCounters;
use server::{
    audit::{AuditPlace, AuditQuery, FoundLines, find_lines},
    ledger::Ledger,
    status::ErrorChain,
    telemetry::{Health, Metrics},
};
use tokio::task::spawn_blocking;
use types::{AppId, Clock, UserId};

use self::{
    counters::{Counters, network_counts},
    ranking::ranking,
    samples::Samples,
};
use super::networks::{Shadow, Trials, WatchedNetwork};

/// Maximum number of lines of the audit log.
const AUDIT_LINES_MAX: usize = 100;

/// The parts of this process that know its state.
pub(super) struct OwnStatus {
    pub(super) health: Health,
    pub(super) metrics: Metrics,
    pub(super) ledger: Ledger,
    /// Knows the names of users.
    pub(super) account: Account,
    /// None if the handler does not run here.
    pub(super) runs: Option<Arc<RunCounters>>,
    pub(super) audit_file: Option<PathBuf>,
    pub(super) networks: Arc<[WatchedNetwork]>,
    pub(super) shadows: Arc<[Shadow]>,
    /// None if the handler does not run here.
    pub(super) trials: Option<Arc<Trials>>,
    pub(super) clock: Arc<dyn Clock>,
}

impl StatusSource for OwnStatus {
    fn status<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, ServerStatus> {
        Box::pin(async move {
            let (checks, owners, (counters, ranking), audit) =
                tokio::join!(checks(&self.health), self.owners(owner), self.counters(), self.events("", ""));
            let Counters { services, queues, applications, history, functions } = counters;
            ServerStatus { checks, services, owners, queues, applications, history, functions, ranking, audit }
        })
    }

    fn usage<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<Vec<OwnerUse>, String>> {
        Box::pin(self.owners(owner))
    }

    fn audit<'a>(&'a self, search: &'a str, before: &'a str) -> BoxFuture<'a, AuditTail> {
        Box::pin(self.events(search, before))
    }

    fn networks(&self) -> BoxFuture<'_, NetworksStatus> {
        Box::pin(async {
            let now = self.clock.now();
            let networks = self.networks.iter().map(|network| network::status(network, now)).collect();
            let shadows = self.shadows.iter().map(network::shadow_status).collect();
            NetworksStatus { networks, shadows, counts: self.network_counts().await }
        })
    }

    fn try_network<'a>(
        &'a self,
        user_id: &'a UserId,
        app_id: &'a AppId,
        network: NewNetwork,
    ) -> BoxFuture<'a, NetworkTrial> {
        Box::pin(async move {
            match &self.trials {
                Some(trials) => trials.run(user_id, app_id, network).await,
                None => {
                    let check = TrialCheck::failed("This server", "the handler does not run in this process");
                    NetworkTrial { checks: vec![check], uplink: None }
                }
            }
        })
    }

    fn checks(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(checks(&self.health))
    }
}

impl OwnStatus {
    /// Some of the figures come from files of the system, and there may be thousands, so a thread that may block reads
    /// them.
    async fn counters(&self) -> (Counters, FunctionRanking) {
        let (metrics, runs) = (self.metrics.clone(), self.runs.clone());
        let read = spawn_blocking(move || {
            let counters = Counters::of(&Samples::parse(&metrics.render()));
            (counters, runs.as_deref().map(ranking).unwrap_or_default())
        });
        // It fails only by a panic, which has been logged.
        read.await.unwrap_or_default()
    }

    async fn network_counts(&self) -> Vec<Count> {
        let metrics = self.metrics.clone();
        let read = spawn_blocking(move || network_counts(&Samples::parse(&metrics.render())));
        // It fails only by a panic, which has been logged.
        read.await.unwrap_or_default()
    }

    async fn events(&self, search: &str, before: &str) -> AuditTail {
        let Some(file) = self.audit_file.clone() else { return AuditTail::NoFile };
        let path = file.display().to_string();
        let (text, before) = (search.to_owned(), AuditPlace::read(before));
        let query = AuditQuery { text, before, lines_max: AUDIT_LINES_MAX };
        match spawn_blocking(move || find_lines(&file, &query)).await {
            Ok(Ok(FoundLines { lines, next })) => {
                AuditTail::Lines { path, lines, next: next.map(|place| place.to_string()) }
            }
            Ok(Err(error)) => AuditTail::Unreadable(ErrorChain(&error).to_string()),
            // A panic, which has been logged.
            Err(_) => AuditTail::Unreadable(format!("cannot read `{path}`")),
        }
    }
}

async fn checks(health: &Health) -> Vec<Check> {
    let report = health.report().await;
    let check = |(name, failure): (&'static str, Option<&str>)| Check {
        name: name.to_owned(),
        failure: failure.map(str::to_owned),
    };
    report.checks().map(check).collect()
}
