//! Accounts of limited resources: a total for each resource, and a share of it for each owner.
//!
//! A process has one ledger. Whoever would exceed a share is refused by the name of the budget, and others notice
//! nothing.

mod budget;
mod metrics;
mod owner;
mod owners;
mod settings;
mod stored;
mod tags;
mod turns;
mod usage;

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub use self::{
    budget::{Budget, Charge, Exceeded, Limits, Resource},
    owner::Owner,
    owners::{OwnerSource, Owners},
    settings::BudgetSettings,
    stored::{BudgetedStore, ReservedDisk},
    turns::{OwnerTurn, Turns},
    usage::{BudgetUsage, OwnerUsage, UsageRow, nearest_to_shares},
};
use crate::telemetry::MetricsSource;

/// The budgets that all services of a process share.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Records in the store, in bytes: what [`BudgetedStore`] counts and refuses.
    pub stored: Arc<Budget>,
    /// Memory of sessions, and of messages that wait in them, in bytes.
    pub queued: Arc<Budget>,
    /// Bodies of requests that have not been read completely, in bytes.
    pub bodies: Arc<Budget>,
    /// Responses that have not been sent completely, in bytes.
    pub responses: Arc<Budget>,
    /// Messages on their way to webhooks and other receivers.
    pub deliveries: Arc<Budget>,
    /// Host names that are being resolved.
    pub look_ups: Arc<Budget>,
    /// Turns for work that takes long.
    pub long_work: Arc<LongWork>,
    /// All budgets, and those that only one listener uses.
    all: Arc<Mutex<Vec<Weak<Budget>>>>,
}

/// Turns for work that takes long.
#[derive(Debug)]
pub struct LongWork {
    /// Pieces of work that take a processor for long, such as those of a large list. Tokio interrupts no task, so half
    /// of the processors are left to whatever is short, and one owner does a single piece at a time.
    pub pieces: Arc<Turns>,
    /// Lists of up to 4 MiB that are in memory until their responses are.
    pub lists: Arc<Turns>,
}

impl Ledger {
    /// Empty budgets of these sizes.
    pub fn new(settings: &BudgetSettings) -> Self {
        metrics::describe();
        let all = Arc::default();
        let budget = |resource| add(&all, Budget::new(resource, settings.limits(resource)));
        Self {
            stored: budget(Resource::StoredBytes),
            queued: budget(Resource::QueuedBytes),
            bodies: budget(Resource::BodyBytes),
            responses: budget(Resource::ResponseBytes),
            deliveries: budget(Resource::Deliveries),
            look_ups: budget(Resource::LookUps),
            long_work: Arc::new(LongWork {
                pieces: Turns::new(budget(Resource::LongWork)),
                lists: Turns::new(budget(Resource::Lists)),
            }),
            all,
        }
    }

    /// An empty budget for one user of this process, which the metrics and [`Ledger::usage`] include.
    pub fn budget(&self, resource: Resource, limits: Limits) -> Arc<Budget> {
        add(&self.all, Budget::new(resource, limits))
    }

    /// The metrics of all budgets.
    pub fn metrics(&self) -> MetricsSource {
        let ledger = self.clone();
        Arc::new(move || metrics::render(ledger.budgets().iter().map(|budget| budget.sample())))
    }

    /// Returns the use of each budget, by all owners or one of them.
    pub fn usage(&self, owner: Option<&Owner>) -> Vec<BudgetUsage> {
        self.budgets().iter().map(|budget| budget.usage(owner)).collect()
    }

    fn budgets(&self) -> Vec<Arc<Budget>> {
        self.all.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

fn add(all: &Mutex<Vec<Weak<Budget>>>, budget: Budget) -> Arc<Budget> {
    let budget = Arc::new(budget);
    let mut all = all.lock();
    all.retain(|other| other.strong_count() > 0);
    all.push(Arc::downgrade(&budget));
    budget
}
