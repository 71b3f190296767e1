//! `airlock user list`: all users, for operators.

use api::rest::account::ListedUser;
use types::Username;

use crate::{command_context::CommandContext, output::Table};

/// Prints the next page that has users: the service looks at some hundred names for each.
pub(super) async fn run(context: &CommandContext, search: &str, after: Option<Username>) -> anyhow::Result<()> {
    let (account, credential) = (context.account()?, context.credential().await?);
    let mut page = account.users(&credential, search, after.as_ref()).await?;
    while page.users.is_empty()
        && let Some(next) = page.next.take()
    {
        page = account.users(&credential, search, Some(&next)).await?;
    }
    let output = &context.output;
    let row = |ListedUser { user, disabled }: ListedUser| {
        let created = output.time(user.created);
        let (username, id) = (user.username.to_string(), user.id.to_string());
        [username.into(), id.into(), user.email.into(), user.valid.into(), disabled.into(), created]
    };
    let columns = [
        ("username", "Name"),
        ("id", "Id"),
        ("email", "E-mail"),
        ("confirmed", "Confirmed"),
        ("disabled", "Disabled"),
        ("registered", "Registered"),
    ];
    output.table(Table::new(columns, page.users.into_iter().map(row)), "There are no such users")?;
    let Some(next) = page.next else { return Ok(()) };
    output.message(format_args!("There may be more: repeat this with `--after {next}`"))
}
