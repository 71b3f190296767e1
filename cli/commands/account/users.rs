//! `airlock account users …`: users of the server's own store.

use account::{Account, UserInfo};
use api::rest::account::NewUser;
use types::Username;

use super::{args::Users, more, yes};
use crate::{
    commands::user::args::Password,
    terminal::{fields, inert, password, say, table},
};

/// Runs one of the commands.
pub(super) async fn run(command: Users, account: &Account) -> anyhow::Result<()> {
    match command {
        Users::List { after } => list(account, after).await,
        Users::Show { username } => show(account, &username).await,
        Users::Create { username, email, password } => create(account, username, email, password).await,
        Users::Disable { username } => {
            account.set_disabled(&username, true).await?;
            say(format_args!("Shut out {username}; sessions, grants and tokens are over"))
        }
        Users::Enable { username } => {
            account.set_disabled(&username, false).await?;
            say(format_args!("Let {username} in again"))
        }
        Users::ResetPassword { username, password: from } => {
            account.reset_password(&username, password(from, "New password: ")?).await?;
            say(format_args!("Gave {username} a new password; sessions, grants and tokens are over"))
        }
        Users::Validate { username } => {
            let user = account.confirm_user(&username).await?;
            say(format_args!("Confirmed the address {} of {username}", inert(&user.email)))
        }
    }
}

async fn list(account: &Account, after: Option<Username>) -> anyhow::Result<()> {
    let users = account.list_users(after.as_ref()).await?;
    let more = users.last().and_then(|last| more("users list", users.len(), last.user.username.as_str()));
    table(
        ["Name", "E-mail", "Confirmed", "Shut out", "Registered"],
        users.into_iter().map(|UserInfo { user, disabled }| {
            [user.username.to_string(), user.email, yes(user.valid), yes(disabled), user.created.to_string()]
        }),
    )?;
    more.map_or(Ok(()), say)
}

async fn show(account: &Account, username: &Username) -> anyhow::Result<()> {
    let UserInfo { user, disabled } = account.show_user(username).await?;
    let name = [user.name.first, user.name.last].into_iter().flatten().collect::<Vec<_>>().join(" ");
    fields([
        ("Username", user.username.to_string()),
        ("Id", user.id.to_string()),
        ("Name", name),
        ("E-mail", user.email),
        ("Confirmed", yes(user.valid)),
        ("Shut out", yes(disabled)),
        ("Registered", user.created.to_string()),
    ])
}

async fn create(account: &Account, username: Username, email: String, from: Password) -> anyhow::Result<()> {
    let password = password(from, "Password: ")?;
    let user = account.add_user(NewUser { username, email, password }).await?;
    say(format_args!("Created user {} with the confirmed address {}", user.username, inert(&user.email)))
}
