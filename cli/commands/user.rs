//! `airlock user …`: who I am.

pub(crate) mod args;
mod login;

use anyhow::{Context, bail};
use api::rest::account::NewUser;
use client::account::AccountClient;
use types::{Clock, Random, Username};

use self::args::{LoginBy, Password, User};
use crate::{
    network::Network,
    session::Login,
    terminal::{fields, password, say},
};

/// Runs one of the commands; without one, shows who is logged in.
pub(crate) async fn run(
    command: Option<User>,
    network: &Network,
    clock: &dyn Clock,
    random: &dyn Random,
) -> anyhow::Result<()> {
    match command {
        None => show(network, clock).await,
        Some(User::Register { username, email, password }) => register(network, username, email, password).await,
        Some(User::Login { by: Some(LoginBy::Name(username)), password }) => {
            login::with_password(network, username, password, clock).await
        }
        Some(User::Login { password: Password { password_stdin: true }, .. }) => {
            bail!("--password-stdin goes with a name: a code needs no password")
        }
        Some(User::Login { by: Some(LoginBy::Code(code)), .. }) => login::with_code(network, code, clock).await,
        Some(User::Login { by: None, .. }) => login::begin(network, clock, random).await,
        Some(User::Logout) => logout(network).await,
    }
}

async fn show(network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let login = network.login(clock).await?;
    let user = network.account()?.me(&network.credential(clock).await?).await?;
    let name = [user.name.first, user.name.last].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let username = user.username.to_string();
    fields([("Username", username), ("Name", name), ("Email", user.email)])?;
    say(format_args!("Login credentials valid until {}", login.expires))
}

async fn register(network: &Network, username: Username, email: String, from: Password) -> anyhow::Result<()> {
    let account = network.account()?;
    let password = password(from, "Password: ")?;
    let registered = account.register_user(&NewUser { username, email, password }).await?;
    say(format_args!("Registered user {}; log in with `airlock user login {0}`", registered.user.username))
}

/// Forgets the login here first: then it is over for whoever sits here, whatever the account service says.
async fn logout(network: &Network) -> anyhow::Result<()> {
    let login = network.files.login()?;
    if !network.files.remove_login()? {
        return say("You were not logged in");
    }
    if let Some(Login { auth_server, refresh_token: Some(refresh_token), .. }) = login {
        let (account, client) = (AccountClient::new(&auth_server)?, Network::client_credentials()?);
        let revoked = account.revoke_token(&client, &refresh_token).await;
        revoked.context("you are logged out here, but the account service could not be told")?;
    }
    say("Logged out")
}
