//! `airlock account users …`: users.

use account::{Account, UserInfo};
use api::rest::account::NewUser;
use types::Username;

use super::{args::Users, next_page};
use crate::{
    commands::yes_no,
    terminal::{PasswordSource, ask_new_password, fields, sanitize, say, table},
};

pub(super) async fn run(command: Users, account: &Account) -> anyhow::Result<()> {
    match command {
        Users::List { after } => list(account, after).await,
        Users::Show { username } => get(account, &username).await,
        Users::Create { username, email, password } => create(account, username, email, password).await,
        Users::Disable { username } => {
            account.set_disabled(&username, true).await?;
            say(format_args!("Disabled {username} and ended all sessions, grants and tokens"))
        }
        Users::Enable { username } => {
            account.set_disabled(&username, false).await?;
            say(format_args!("Enabled {username}"))
        }
        Users::ResetPassword { username, password: source } => {
            account.reset_password(&username, ask_new_password(source, "New password: ")?).await?;
            say(format_args!("Set a new password for {username} and ended all sessions, grants and tokens"))
        }
        Users::Validate { username } => {
            let user = account.confirm_user(&username).await?;
            say(format_args!("Confirmed the e-mail address {} of {username}", sanitize(&user.email)))
        }
    }
}

async fn list(account: &Account, after: Option<Username>) -> anyhow::Result<()> {
    let users = account.list_users(after.as_ref()).await?;
    let next_page = users.last().and_then(|last| next_page("users list", users.len(), last.user.username.as_str()));
    table(
        ["Name", "E-mail", "Confirmed", "Disabled", "Registered"],
        users.into_iter().map(|UserInfo { user, disabled }| {
            [user.username.to_string(), user.email, yes_no(user.valid), yes_no(disabled), user.created.to_string()]
        }),
    )?;
    next_page.map_or(Ok(()), say)
}

async fn get(account: &Account, username: &Username) -> anyhow::Result<()> {
    let UserInfo { user, disabled } = account.show_user(username).await?;
    let name = [user.name.first, user.name.last].into_iter().flatten().collect::<Vec<_>>().join(" ");
    fields([
        ("Username", user.username.to_string()),
        ("Id", user.id.to_string()),
        ("Name", name),
        ("E-mail", user.email),
        ("Confirmed", yes_no(user.valid)),
        ("Disabled", yes_no(disabled)),
        ("Registered", user.created.to_string()),
    ])
}

async fn create(account: &Account, username: Username, email: String, source: PasswordSource) -> anyhow::Result<()> {
    let password = ask_new_password(source, "Password: ")?;
    let user = account.add_user(NewUser { username, email, password }).await?;
    say(format_args!("Created user {} with the confirmed e-mail address {}", user.username, sanitize(&user.email)))
}
