//! `airlock account users …`: users.

use account::Account;
use api::rest::account::{ListedUser, NewUser};
use types::Username;

use super::{args::Users, next_page};
use crate::{
    output::{Output, Record, Table},
    terminal::{PasswordSource, ask_new_password, sanitize},
};

pub(super) async fn run(command: Users, account: &Account, output: &Output) -> anyhow::Result<()> {
    match command {
        Users::List { after } => list(account, after, output).await,
        Users::Show { username } => get(account, &username, output).await,
        Users::Create { username, email, password } => create(account, (username, email), password, output).await,
        Users::Disable { username } => {
            account.set_disabled(&username, true).await?;
            output.message(format_args!("Disabled {username} and ended all sessions, grants and tokens"))
        }
        Users::Enable { username } => {
            account.set_disabled(&username, false).await?;
            output.message(format_args!("Enabled {username}"))
        }
        Users::ResetPassword { username, password: source } => {
            account.reset_password(&username, ask_new_password(source, "New password: ")?).await?;
            output.message(format_args!("Set a new password for {username} and ended all sessions, grants and tokens"))
        }
        Users::Validate { username } => {
            let user = account.confirm_user(&username).await?;
            output.message(format_args!("Confirmed the e-mail address {} of {username}", sanitize(&user.email)))
        }
    }
}

async fn list(account: &Account, after: Option<Username>, output: &Output) -> anyhow::Result<()> {
    let users = account.list_users(after.as_ref()).await?;
    let next_page = users.last().and_then(|last| next_page("users list", users.len(), last.user.username.as_str()));
    let row = |ListedUser { user, disabled }: ListedUser| {
        let created = output.time(user.created);
        [user.username.to_string().into(), user.email.into(), user.valid.into(), disabled.into(), created]
    };
    let columns = [
        ("username", "Name"),
        ("email", "E-mail"),
        ("confirmed", "Confirmed"),
        ("disabled", "Disabled"),
        ("registered", "Registered"),
    ];
    output.table(Table::new(columns, users.into_iter().map(row)), "There are no users")?;
    next_page.map_or(Ok(()), |next_page| output.message(next_page))
}

async fn get(account: &Account, username: &Username, output: &Output) -> anyhow::Result<()> {
    let ListedUser { user, disabled } = account.show_user(username).await?;
    let name = [user.name.first, user.name.last].into_iter().flatten().collect::<Vec<_>>().join(" ");
    output.record(Record::new([
        (("username", "Username"), user.username.to_string().into()),
        (("id", "Id"), user.id.to_string().into()),
        (("name", "Name"), name.into()),
        (("email", "E-mail"), user.email.into()),
        (("confirmed", "Confirmed"), user.valid.into()),
        (("disabled", "Disabled"), disabled.into()),
        (("registered", "Registered"), output.time(user.created)),
    ]))
}

async fn create(
    account: &Account,
    (username, email): (Username, String),
    source: PasswordSource,
    output: &Output,
) -> anyhow::Result<()> {
    let password = ask_new_password(source, "Password: ")?;
    let user = account.add_user(NewUser { username, email, password }).await?;
    output.message(format_args!(
        "Created user {} with the confirmed e-mail address {}",
        user.username,
        sanitize(&user.email)
    ))
}
