//! What owners use of each budget, as the operator of a process sees it.

use serde::{Deserialize, Serialize};

use super::{Budget, Limits, Owner, Resource};

/// How many owners are listed for each budget.
const LISTED_MAX: usize = 100;

/// What is used of one budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetUsage {
    /// What can run out.
    pub resource: Resource,
    /// What all owners may use together.
    pub total: u64,
    /// What all owners use together.
    pub used: u64,
    /// Owners that use something, the largest first; at most 100, or only the one that was asked for.
    pub owners: Vec<OwnerUsage>,
}

/// What one owner uses of a budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerUsage {
    /// The owner.
    pub owner: Owner,
    /// How much it uses.
    pub used: u64,
    /// How much it may use at the moment.
    pub share: u64,
}

impl Budget {
    /// What is used, by all owners or one of them.
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
