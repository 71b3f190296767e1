//! `airlock account usage`: the owners' usage of the budgets of a running server.

use std::{cmp::Reverse, collections::BTreeSet};

use account::Account;
use anyhow::bail;
use server::{
    audit::AuditLog,
    ledger::{BudgetUsage, Owner, OwnerUsage, Resource},
};
use types::{UserId, Username};

use crate::{
    output::{Cell, Output, Table},
    serve::{open_account, running_usage, serves_accounts},
    settings::Settings,
};

/// Maximum number of owners in the list.
const LISTED_MAX: usize = 50;

pub(super) async fn run(
    username: Option<Username>,
    (settings, audit): (Settings, AuditLog),
    output: &Output,
) -> anyhow::Result<()> {
    // The store of a handler alone has no users.
    let account = match serves_accounts(&settings) {
        true => Some(open_account(settings.clone(), audit).await?.0),
        false => None,
    };
    let owner = match (&username, &account) {
        (None, _) => None,
        (Some(username), Some(account)) => Some(Owner::from(&account.show_user(username).await?.user.id)),
        (Some(_), None) => bail!(
            "{} has no users: leave out the username to see the ids of all owners, or name the account service's data \
             directory with --data",
            settings.data_dir.display()
        ),
    };
    let usage = running_usage(&settings, owner.as_ref()).await?;
    let mut rows = Vec::new();
    for (resource, used) in listed(usage) {
        let name = name_of(&used.owner, account.as_ref()).await?;
        rows.push(row(name, resource, &used));
    }
    let columns = [("owner", "Owner"), ("budget", "Budget"), ("used", "Used"), ("share", "Share"), ("percent", "%")];
    output.table(Table::new(columns, rows), "Nothing of the budgets is used")
}

/// The owners nearest to their shares first. Some budgets exist once for each service: of those, an owner has one row,
/// for the fullest.
fn listed(usage: Vec<BudgetUsage>) -> Vec<(Resource, OwnerUsage)> {
    let owners = |budget: BudgetUsage| budget.owners.into_iter().map(move |owner| (budget.resource, owner));
    let mut all: Vec<_> = usage.into_iter().flat_map(owners).filter(|(_, owner)| owner.used > 0).collect();
    all.sort_by_key(|(_, owner)| Reverse(owner.percent()));
    let mut seen = BTreeSet::new();
    all.retain(|(resource, usage)| seen.insert((usage.owner.clone(), *resource)));
    all.truncate(LISTED_MAX);
    all
}

/// A user by name, if the name is known here.
async fn name_of(owner: &Owner, account: Option<&Account>) -> anyhow::Result<String> {
    if let (Owner::User(id), Some(account)) = (owner, account)
        && let Ok(id) = UserId::try_from(id.to_string())
        && let Some(username) = account.username_of(&id).await?
    {
        return Ok(format!("user {username}"));
    }
    Ok(owner.to_string())
}

fn row(name: String, resource: Resource, usage: &OwnerUsage) -> [Cell; 5] {
    let number = |number: u64| Cell::new(number.to_string(), number);
    [name.into(), resource.name().into(), number(usage.used), number(usage.share), number(usage.percent())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_budget_that_each_service_has_an_owner_has_one_row() {
        let budget = |used| {
            let owner = OwnerUsage { owner: Owner::User("a".into()), used, share: 50 };
            BudgetUsage { resource: Resource::HttpConnections, total: 100, used, owners: vec![owner] }
        };
        let rows = listed(vec![budget(20), budget(40), budget(0)]);
        assert_eq!(rows.iter().map(|(_, usage)| usage.used).collect::<Vec<_>>(), [40]);
    }
}
