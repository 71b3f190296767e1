//! The tenant that a job belongs to, and the priority of the job.

use std::sync::Arc;

use fair_queue::Member;

/// Factor by which live traffic gets more fuel than dry runs when both wait.
const DRY_WEIGHT: u64 = 8;

/// The tenant that a job belongs to, and the priority of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Fuel is shared fairly between owners.
    pub owner: Arc<str>,
    /// An owner's share is divided fairly between its tenants.
    pub id: Arc<str>,
    /// The priority of the job.
    pub priority: Priority,
}

impl Tenant {
    /// A tenant that is an owner of its own.
    pub fn alone(id: impl Into<Arc<str>>, priority: Priority) -> Self {
        let id = id.into();
        Self { owner: Arc::clone(&id), id, priority }
    }

    pub(super) fn member(&self) -> Member<'_> {
        Member { owner: &self.owner, weight: 1, tenant: &self.id }
    }
}

/// The priority of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// A live message.
    Live,
    /// A dry run, or loading functions that somebody saves: runs after live traffic, with a small guaranteed share.
    DryRun,
}

impl Priority {
    pub(super) const fn index(self) -> usize {
        self as usize
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Live => Self::DryRun,
            Self::DryRun => Self::Live,
        }
    }

    /// The weight of a unit of fuel among those of its priority.
    pub(super) const fn weight(self) -> u64 {
        match self {
            Self::Live => 1,
            Self::DryRun => DRY_WEIGHT,
        }
    }
}
