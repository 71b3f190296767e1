//! Use of each budget by its owners, as shown to the operator of a process.

use std::{cmp::Reverse, collections::BTreeSet};

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

/// One owner's use of a budget, with that of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Resource that is limited.
    pub resource: Resource,
    /// The owner's use.
    pub usage: OwnerUsage,
    /// Amount that all owners use together.
    pub used_by_all: u64,
    /// Maximum of all owners together.
    pub total: u64,
}

/// Returns at most `rows_max` owners that use something, the nearest to their shares first. Some budgets exist once for
/// each service: of those, an owner has one row, for the fullest.
pub fn nearest_to_shares(usage: Vec<BudgetUsage>, rows_max: usize) -> Vec<UsageRow> {
    let rows = |BudgetUsage { resource, total, used, owners }: BudgetUsage| {
        let row = move |usage| UsageRow { resource, usage, used_by_all: used, total };
        owners.into_iter().filter(|owner| owner.used > 0).map(row)
    };
    let mut all: Vec<_> = usage.into_iter().flat_map(rows).collect();
    all.sort_by_key(|row| Reverse(row.usage.percent()));
    let mut seen = BTreeSet::new();
    all.retain(|row| seen.insert((row.usage.owner.clone(), row.resource)));
    all.truncate(rows_max);
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(resource: Resource, owners: &[(&str, u64)]) -> BudgetUsage {
        let usage =
            |(name, used): &(&str, u64)| OwnerUsage { owner: Owner::User((*name).into()), used: *used, share: 50 };
        BudgetUsage { resource, total: 100, used: 60, owners: owners.iter().map(usage).collect() }
    }

    fn rows(usage: Vec<BudgetUsage>, rows_max: usize) -> Vec<(String, &'static str, u64)> {
        let rows = nearest_to_shares(usage, rows_max);
        rows.iter().map(|row| (row.usage.owner.to_string(), row.resource.name(), row.usage.percent())).collect()
    }

    #[test]
    fn whoever_is_nearest_to_a_share_of_any_budget_comes_first() {
        let usage = vec![budget(Resource::Lists, &[("a", 20), ("b", 0)]), budget(Resource::Deliveries, &[("b", 40)])];
        let expected = [("user b".to_owned(), "deliveries", 80), ("user a".to_owned(), "lists", 40)];
        assert_eq!(rows(usage, 100), expected);
    }

    #[test]
    fn of_a_budget_that_each_service_has_an_owner_has_one_row() {
        let usage = vec![budget(Resource::Lists, &[("a", 20)]), budget(Resource::Lists, &[("a", 40), ("b", 1)])];
        let expected = [("user a".to_owned(), "lists", 80), ("user b".to_owned(), "lists", 2)];
        assert_eq!(rows(usage, 100), expected);
    }

    #[test]
    fn the_number_of_rows_is_bounded() {
        let usage = vec![budget(Resource::Lists, &[("a", 1), ("b", 3), ("c", 2)])];
        let expected = [("user b".to_owned(), "lists", 6), ("user c".to_owned(), "lists", 4)];
        assert_eq!(rows(usage, 2), expected);
    }
}
