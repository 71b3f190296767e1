//! The state of this process for the console's page of operators.

mod figures;
mod owners;
mod ranking;
mod samples;

use std::{path::PathBuf, sync::Arc};

use account::Account;
use console::{AuditTail, Check, FunctionRanking, NetworkStatus, ServerStatus, StatusSource};
use futures::future::{BoxFuture, join_all};
use handler::uplink::Runs;
use server::{
    audit::last_lines,
    ledger::Ledger,
    status::ErrorChain,
    telemetry::{Health, Metrics},
};
use tokio::task::spawn_blocking;
use types::AppId;

use self::{figures::Figures, ranking::ranking, samples::Samples};

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
    pub(super) runs: Option<Arc<Runs>>,
    pub(super) audit_file: Option<PathBuf>,
    pub(super) networks: Vec<WatchedNetwork>,
}

/// A network whose devices belong to applications of this process.
#[derive(Clone)]
pub(super) struct WatchedNetwork {
    pub(super) name: String,
    pub(super) app_ids: Vec<AppId>,
    /// The checks of this network alone. In those of the process, networks of one kind share a name.
    pub(super) health: Health,
}

impl StatusSource for OwnStatus {
    fn status<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, ServerStatus> {
        Box::pin(async move {
            let networks = join_all(self.networks.iter().map(WatchedNetwork::status));
            let (checks, owners, (figures, ranking), networks, audit) =
                tokio::join!(checks(&self.health), self.owners(owner), self.figures(), networks, self.audit());
            let Figures { services, queues, applications, functions, network_counts } = figures;
            ServerStatus {
                checks,
                services,
                owners,
                queues,
                applications,
                functions,
                ranking,
                networks,
                network_counts,
                audit,
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
    async fn figures(&self) -> (Figures, FunctionRanking) {
        let (metrics, runs) = (self.metrics.clone(), self.runs.clone());
        let read = spawn_blocking(move || {
            let figures = Figures::of(&Samples::parse(&metrics.render()));
            (figures, runs.as_deref().map(ranking).unwrap_or_default())
        });
        // It fails only by a panic, which has been logged.
        read.await.unwrap_or_default()
    }

    async fn audit(&self) -> AuditTail {
        let Some(file) = self.audit_file.clone() else { return AuditTail::NoFile };
        let path = file.display().to_string();
        match spawn_blocking(move || last_lines(&file, AUDIT_LINES_MAX)).await {
            Ok(Ok(lines)) => AuditTail::Lines { path, lines },
            Ok(Err(error)) => AuditTail::Unreadable(ErrorChain(&error).to_string()),
            // A panic, which has been logged.
            Err(_) => AuditTail::Unreadable(format!("cannot read `{path}`")),
        }
    }
}

impl WatchedNetwork {
    async fn status(&self) -> NetworkStatus {
        NetworkStatus {
            name: self.name.clone(),
            app_ids: self.app_ids.iter().map(ToString::to_string).collect(),
            checks: checks(&self.health).await,
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
