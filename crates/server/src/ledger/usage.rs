//! Use of each budget by its owners, as shown to the operator of a process.

use serde::{Deserialize, Serialize};

use super::{Budget, Limits, Owner, Resource};

/// Maximum number of owners listed per budget.
const LISTED_MAX: usize = 100;

/// The use of one budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetUsage {
    /// Resource that is limited.
    pub resource: Resource,
    /// Maximum of all owners together.
    pub total: u64,
    /// Amount that all owners use together.
    pub used: u64,
    /// Owners that use something, the largest first; at most 100, or only the one that was asked for.
    pub owners: Vec<OwnerUsage>,
}

/// One owner's use of a budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerUsage {
    /// The one that is charged.
    pub owner: Owner,
    /// Amount that it uses.
    pub used: u64,
    /// Amount that it may use at the moment.
    pub share: u64,
}

impl OwnerUsage {
    /// Returns the part of its share that it uses, in percent.
    pub fn percent(&self) -> u64 {
        self.used.saturating_mul(100) / self.share.max(1)
    }
}

impl Budget {
    /// Returns the use by all owners or one of them.
    pub(super) fn usage(&self, owner: Option<&Owner>) -> BudgetUsage {
        let state = self.lock();
        let share = self.limits.share(state.used);
        let usage = |(owner, used): (&Owner, &u64)| OwnerUsage { owner: owner.clone(), used: *used, share };
        let mut owners: Vec<_> = match owner {
            Some(owner) => vec![usage((owner, state.owners.get(owner).unwrap_or(&0)))],
            None => state.owners.iter().map(usage).collect(),
        };
        let Limits { total, .. } = self.limits;
        let used = state.used;
        drop(state);
        owners.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.owner.cmp(&b.owner)));
        owners.truncate(LISTED_MAX);
        BudgetUsage { resource: self.resource, total, used, owners }
    }
}
