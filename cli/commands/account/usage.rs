//! `airlock account usage`: the owners' usage of the budgets of a running server.

use account::Account;
use anyhow::bail;
use server::{
    audit::AuditLog,
    ledger::{Owner, UsageRow, nearest_to_shares},
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
    for used in nearest_to_shares(usage, LISTED_MAX) {
        let name = name_of(&used.usage.owner, account.as_ref()).await?;
        rows.push(row(name, &used));
    }
    let columns = [("owner", "Owner"), ("budget", "Budget"), ("used", "Used"), ("share", "Share"), ("percent", "%")];
    output.table(Table::new(columns, rows), "Nothing of the budgets is used")
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

fn row(name: String, UsageRow { resource, usage, .. }: &UsageRow) -> [Cell; 5] {
    let number = |number: u64| Cell::new(number.to_string(), number);
    [name.into(), resource.name().into(), number(usage.used), number(usage.share), number(usage.percent())]
}
