//! `airlock user …`: registration and login; for operators, all users.

pub(crate) mod args;
mod list;
mod login;
mod loopback;

use anyhow::{Context, bail};
use api::rest::account::NewUser;
use client::account::AccountClient;
use types::Username;

use self::args::{LoginBy, User};
use crate::{
    command_context::{CommandContext, session::Login},
    exit::CommandError,
    output::Record,
    terminal::{PasswordSource, ask_new_password},
};

pub(crate) async fn run(command: Option<User>, context: &CommandContext) -> anyhow::Result<()> {
    match command {
        None | Some(User::Get) => get(context).await,
        Some(User::Register { username, email, password }) => create(context, username, email, password).await,
        Some(User::Login { by: Some(LoginBy::Name(username)), password, .. }) => {
            login::with_password(context, username, password).await
        }
        Some(User::Login { password: PasswordSource { password_stdin: true }, .. }) => {
            bail!(CommandError::invalid("--password-stdin needs a username: logging in with a code takes no password"))
        }
        Some(User::Login { by: Some(LoginBy::Code(code)), .. }) => login::with_code(context, code).await,
        Some(User::Login { by: None, no_browser, .. }) => login::with_browser(context, no_browser).await,
        Some(User::List { search, after }) => list::run(context, search.as_deref().unwrap_or_default(), after).await,
        Some(User::Logout) => logout(context).await,
    }
}

async fn get(context: &CommandContext) -> anyhow::Result<()> {
    let login = context.login().await?;
    let user = context.account()?.me(&context.credential().await?).await?;
    let name = [user.name.first, user.name.last].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let username = user.username.to_string();
    context.output.record(Record::new([
        (("username", "Username"), username.into()),
        (("name", "Name"), name.into()),
        (("email", "Email"), user.email.into()),
        (("valid_until", "Login valid until"), context.output.time(login.expires)),
    ]))
}

async fn create(
    context: &CommandContext,
    username: Username,
    email: String,
    source: PasswordSource,
) -> anyhow::Result<()> {
    let account = context.account()?;
    let password = ask_new_password(source, "Password: ")?;
    let registered = account.register_user(&NewUser { username, email, password }).await?;
    let username = registered.user.username;
    context.output.message(format_args!("Registered user {username}. Log in with `airlock user login {username}`"))
}

/// Deletes the local login before revoking it, so that a failing account service cannot prevent a logout.
async fn logout(context: &CommandContext) -> anyhow::Result<()> {
    let login = context.files.login()?;
    if !context.files.delete_login()? {
        return context.output.message("You were not logged in");
    }
    if let Some(Login { auth_server, client, refresh_token: Some(refresh_token), .. }) = login {
        let (account, client) = (AccountClient::new(&auth_server)?, client.credentials()?);
        let revoked = account.revoke_token(&client, &refresh_token).await;
        revoked.context("logged out here, but cannot revoke the login at the account service")?;
    }
    context.output.message("Logged out")
}
