//! The page of operators: how the process is, who uses what, what waits, and the audit log. It changes nothing.
//! Networks have a page of their own.

pub(super) mod audit;
mod entry;
mod ranking;
mod usage;
pub(super) mod user;
pub(super) mod users;

use std::{collections::BTreeSet, mem, time::Duration};

use askama::Template;
use axum::extract::Query;
use server::status::ErrorChain;
use tokio::time::timeout;

use self::{audit::Events, ranking::Ranking, usage::Usage};
use super::{
    failure::{Failure, Problem},
    page::{Frame, Page, grouped},
    viewer::{Operator, Sent},
};
use crate::{
    Console, Error,
    console::ConsoleAddress,
    form::drafts::Fields,
    session::Session,
    status::{ApplicationLoad, Check, FunctionCounts, FunctionRanking, HistoryState, Queue, ServerStatus, ServiceLoad},
};

/// Maximum time that the page waits to learn which applications it may link.
const LINKS_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Template)]
#[template(path = "operator.html")]
pub(super) struct Show {
    frame: Frame,
    /// The owner that is looked for; empty for all.
    owner: String,
    /// The checks of the process; none where only the console runs.
    checks: Vec<Check>,
    /// The reason why only the checks are shown, which anybody may know.
    unconfirmed: Option<Problem>,
    /// None where only the console runs, and while the login cannot be confirmed.
    view: Option<View>,
}

/// The state of the process, with what the page shows in another form.
struct View {
    services: Vec<ServiceLoad>,
    owners: Vec<Usage>,
    /// The reason why the owners are not known.
    owners_problem: Option<String>,
    queues: Vec<Queue>,
    applications: Vec<ApplicationLoad>,
    history: HistoryState,
    functions: FunctionCounts,
    ranking: Ranking,
    /// The end of the audit log.
    events: Events,
}

pub(super) async fn show(
    Operator { console, session, frame, unconfirmed }: Operator,
    Query(fields): Query<Fields>,
) -> Result<Page<Show>, Failure> {
    let owner = Sent(fields).value("owner").trim().to_owned();
    let (checks, view) = match (console.status(), &*console.place) {
        (Some(source), _) if unconfirmed.is_some() => (source.checks().await, None),
        (Some(source), _) => {
            let mut status = source.status(&owner).await;
            let own = linked_applications(&console, &session, &status.ranking).await;
            (mem::take(&mut status.checks), Some(View::of(status, &own)))
        }
        (None, ConsoleAddress::Alone { .. }) => (Vec::new(), None),
        (None, ConsoleAddress::WithAccount { .. }) => return Err(Error::Starting.into()),
    };
    Ok(Page::new(Show { frame, owner, checks, unconfirmed, view }))
}

/// The viewer's own applications, if any are shown.
async fn linked_applications(console: &Console, session: &Session, ranking: &FunctionRanking) -> BTreeSet<String> {
    match ranking.failing.is_empty() && ranking.slowest.is_empty() {
        true => BTreeSet::new(),
        false => own_applications(console, session).await,
    }
}

/// The viewer's own applications. To others, an operator has no rights, so they are no links.
pub(super) async fn own_applications(console: &Console, session: &Session) -> BTreeSet<String> {
    match timeout(LINKS_TIMEOUT, console.applications(session)).await {
        Ok(Ok(applications)) => applications.into_iter().map(|application| application.id.to_string()).collect(),
        Ok(Err(error)) => {
            tracing::debug!(error = %ErrorChain(&error), "the applications of an operator are not known");
            BTreeSet::new()
        }
        Err(_) => BTreeSet::new(),
    }
}

impl View {
    fn mean_fuel(&self) -> Option<String> {
        self.functions.mean_fuel.map(grouped)
    }

    fn of(status: ServerStatus, own: &BTreeSet<String>) -> Self {
        let ServerStatus { services, owners, queues, applications, .. } = status;
        let ServerStatus { history, functions, ranking, audit, .. } = status;
        let (owners, owners_problem) = match owners {
            Ok(owners) => (owners.into_iter().map(Usage::from).collect(), None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        Self {
            services,
            owners,
            owners_problem,
            queues,
            applications,
            history,
            functions,
            ranking: Ranking::of(ranking, own),
            events: Events::from(audit),
        }
    }
}
