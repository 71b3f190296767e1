//! Use of the budgets by owners, with the names of users.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use console::OwnerUse;
use futures::future::join_all;
use server::{
    ledger::{BudgetUsage, Owner, OwnerUsage},
    status::ErrorChain,
};
use tokio::task::spawn_blocking;
use types::{Kind, Kinded, UserId, Username};

use super::OwnStatus;

/// Maximum number of rows.
const ROWS_MAX: usize = 100;

/// An owner's use of a budget, and the budget.
struct Row {
    usage: OwnerUsage,
    budget: &'static str,
    used_by_all: u64,
    total: u64,
}

impl OwnStatus {
    /// The use of all budgets, nearest to a share first, by the owner that is named, or by all if none is.
    pub(super) async fn owners(&self, named: &str) -> Result<Vec<OwnerUse>, String> {
        let owner = match named {
            "" => None,
            named => match self.find(named).await? {
                Some(owner) => Some(owner),
                None => return Ok(Vec::new()),
            },
        };
        let ledger = self.ledger.clone();
        // There may be as many owners as addresses. It fails only by a panic, which has been logged.
        let usage = spawn_blocking(move || ledger.usage(owner.as_ref())).await;
        let usage = usage.map_err(|_| "an internal error, see the log".to_owned())?;
        let rows = nearest(usage);
        let names = self.names(&rows).await;
        Ok(rows.into_iter().map(|row| row.with_name(&names)).collect())
    }

    /// The owner that an operator names: with its kind, as the page shows it, or a user by the name alone. None if there
    /// is no such user.
    async fn find(&self, named: &str) -> Result<Option<Owner>, String> {
        let name = match named.split_once(' ') {
            Some(("user", name)) => name,
            Some(_) => return Ok(Owner::try_from(named.to_owned()).ok()),
            None => named,
        };
        let Ok(username) = name.parse::<Username>() else { return Ok(None) };
        match self.account.show_user(&username).await {
            Ok(found) => Ok(Some(Owner::from(&found.user.id))),
            // The page shows the id of a user whose name is not known.
            Err(error) if error.kind() == Kind::NotFound => {
                Ok(UserId::try_from(name.to_owned()).ok().map(|user_id| Owner::from(&user_id)))
            }
            Err(error) => Err(ErrorChain(&error).to_string()),
        }
    }

    /// The owners of these rows as the page shows them.
    async fn names(&self, rows: &[Row]) -> BTreeMap<Owner, String> {
        let owners: BTreeSet<Owner> = rows.iter().map(|row| row.usage.owner.clone()).collect();
        let named = owners.into_iter().map(|owner| async move { (owner.clone(), self.name_of(&owner).await) });
        join_all(named).await.into_iter().collect()
    }

    /// A user by name, if that is known; otherwise the id.
    async fn name_of(&self, owner: &Owner) -> String {
        if let Owner::User(id) = owner
            && let Ok(user_id) = UserId::try_from(id.to_string())
        {
            match self.account.username_of(&user_id).await {
                Ok(Some(username)) => return format!("user {username}"),
                Ok(None) => {}
                Err(error) => tracing::debug!(error = %ErrorChain(&error), "the name of an owner is not known"),
            }
        }
        owner.to_string()
    }
}

impl Row {
    fn with_name(self, names: &BTreeMap<Owner, String>) -> OwnerUse {
        let Self { usage, budget, used_by_all, total } = self;
        OwnerUse {
            percent: usage.percent(),
            owner: names.get(&usage.owner).cloned().unwrap_or_else(|| usage.owner.to_string()),
            budget: budget.to_owned(),
            used: usage.used,
            share: usage.share,
            used_by_all,
            total,
        }
    }
}

/// The owners that use something, the nearest to their shares first. Some budgets exist once for each service: of those,
/// an owner has one row, for the fullest.
fn nearest(usage: Vec<BudgetUsage>) -> Vec<Row> {
    let rows = |BudgetUsage { resource, total, used, owners }: BudgetUsage| {
        let row = move |usage| Row { usage, budget: resource.name(), used_by_all: used, total };
        owners.into_iter().filter(|owner| owner.used > 0).map(row)
    };
    let mut all: Vec<_> = usage.into_iter().flat_map(rows).collect();
    all.sort_by_key(|row| Reverse(row.usage.percent()));
    let mut seen = BTreeSet::new();
    all.retain(|row| seen.insert((row.usage.owner.clone(), row.budget)));
    all.truncate(ROWS_MAX);
    all
}

#[cfg(test)]
mod tests {
    use server::ledger::Resource;

    use super::*;

    fn budget(resource: Resource, owners: &[(&str, u64)]) -> BudgetUsage {
        let usage =
            |(name, used): &(&str, u64)| OwnerUsage { owner: Owner::User((*name).into()), used: *used, share: 50 };
        BudgetUsage { resource, total: 100, used: 60, owners: owners.iter().map(usage).collect() }
    }

    #[test]
    fn whoever_is_nearest_to_a_share_of_any_budget_comes_first() {
        let usage = vec![budget(Resource::Lists, &[("a", 20), ("b", 0)]), budget(Resource::Deliveries, &[("b", 40)])];
        let rows: Vec<_> = nearest(usage).into_iter().map(|row| row.with_name(&BTreeMap::new())).collect();
        let shown: Vec<_> = rows.iter().map(|row| (row.owner.as_str(), row.budget.as_str(), row.percent)).collect();
        assert_eq!(shown, [("user b", "deliveries", 80), ("user a", "lists", 40)]);
        assert_eq!((rows[0].used, rows[0].share, rows[0].used_by_all, rows[0].total), (40, 50, 60, 100));
    }

    #[test]
    fn of_a_budget_that_each_service_has_an_owner_has_one_row() {
        let usage = vec![budget(Resource::Lists, &[("a", 20)]), budget(Resource::Lists, &[("a", 40), ("b", 1)])];
        let shown: Vec<_> = nearest(usage).iter().map(|row| (row.usage.owner.to_string(), row.usage.used)).collect();
        assert_eq!(shown, [("user a".to_owned(), 40), ("user b".to_owned(), 1)]);
    }

    #[test]
    fn the_number_of_rows_is_bounded() {
        let names: Vec<_> = (0..200).map(|number| number.to_string()).collect();
        let owners: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
        assert_eq!(nearest(vec![budget(Resource::Lists, &owners)]).len(), ROWS_MAX);
    }
}
