//! Use of the budgets by owners, with the names of users.

use std::collections::{BTreeMap, BTreeSet};

use console::OwnerUse;
use futures::future::join_all;
use server::{
    ledger::{Owner, UsageRow, nearest_to_shares},
    status::ErrorChain,
};
use tokio::task::spawn_blocking;
use types::{Kind, Kinded, UserId, Username};

use super::OwnStatus;

/// Maximum number of rows.
const ROWS_MAX: usize = 100;

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
        let rows = nearest_to_shares(usage, ROWS_MAX);
        let names = self.names(&rows).await;
        Ok(rows.into_iter().map(|row| owner_use(row, &names)).collect())
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
    async fn names(&self, rows: &[UsageRow]) -> BTreeMap<Owner, String> {
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

/// A row of the page.
fn owner_use(row: UsageRow, names: &BTreeMap<Owner, String>) -> OwnerUse {
    let UsageRow { resource, usage, used_by_all, total } = row;
    OwnerUse {
        percent: usage.percent(),
        owner: names.get(&usage.owner).cloned().unwrap_or_else(|| usage.owner.to_string()),
        budget: resource.name().to_owned(),
        used: usage.used,
        share: usage.share,
        used_by_all,
        total,
    }
}

#[cfg(test)]
mod tests {
    use server::ledger::{OwnerUsage, Resource};

    use super::*;

    #[test]
    fn an_owner_has_a_name_if_it_is_known() {
        let owner = Owner::User("a".into());
        let usage = OwnerUsage { owner: owner.clone(), used: 40, share: 50 };
        let row = UsageRow { resource: Resource::Deliveries, usage, used_by_all: 60, total: 100 };
        let named = owner_use(row.clone(), &BTreeMap::from([(owner, "user eve".to_owned())]));
        let unnamed = owner_use(row, &BTreeMap::new());
        assert_eq!((named.owner.as_str(), unnamed.owner.as_str()), ("user eve", "user a"));
        assert_eq!((named.budget.as_str(), named.percent), ("deliveries", 80));
        assert_eq!((named.used, named.share, named.used_by_all, named.total), (40, 50, 60, 100));
    }
}
