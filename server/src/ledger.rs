//! Who uses how much of what can run out: a total for each resource, and a share of it for each owner.
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

use std::sync::Arc;

pub use self::{
    budget::{Budget, Charge, Exceeded, Limits, Resource, Use},
    owner::Owner,
    owners::{OwnerSource, Owners},
    settings::BudgetSettings,
    stored::{BudgetedStore, ReservedDisk},
    turns::{OwnerTurn, Turns},
};
use crate::telemetry::MetricsSource;

/// The budgets that all services of a process share. Those of connections are next to their listeners.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Records in the store, in bytes: what [`BudgetedStore`] counts and refuses.
    pub stored: Arc<Budget>,
    /// Bodies of requests that have not been read completely, in bytes.
    pub bodies: Arc<Budget>,
    /// Responses that have not been sent completely, in bytes.
    pub responses: Arc<Budget>,
    /// Messages on their way to webhooks and other receivers.
    pub deliveries: Arc<Budget>,
    /// Host names that are being resolved.
    pub look_ups: Arc<Budget>,
}

impl Ledger {
    /// Empty budgets of these sizes.
    pub fn new(settings: &BudgetSettings) -> Self {
        metrics::describe();
        let budget = |resource| Arc::new(Budget::new(resource, settings.limits(resource)));
        Self {
            stored: budget(Resource::StoredBytes),
            bodies: budget(Resource::BodyBytes),
            responses: budget(Resource::ResponseBytes),
            deliveries: budget(Resource::Deliveries),
            look_ups: budget(Resource::LookUps),
        }
    }

    /// The metrics of all budgets.
    pub fn metrics(&self) -> MetricsSource {
        let ledger = self.clone();
        Arc::new(move || {
            let Self { stored, bodies, responses, deliveries, look_ups } = &ledger;
            metrics::render(&[stored, bodies, responses, deliveries, look_ups].map(|budget| budget.sample()))
        })
    }
}
