//! `airlock user …`: who I am.

use std::time::Duration;

use anyhow::Context;
use api::rest::account::NewUser;
use types::{Clock, Secret, Username};

use crate::{
    args::{Password, User},
    network::Network,
    session::Login,
    terminal::{fields, inert, password, say},
};

/// Runs one of the commands; without one, shows who is logged in.
pub(crate) async fn run(command: Option<User>, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    match command {
        None => show(network, clock).await,
        Some(User::Register { username, email, password }) => register(network, username, email, password).await,
        Some(User::Login { username, password }) => login(network, username, password, clock).await,
        Some(User::Logout) => logout(network),
    }
}

async fn show(network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let login = network.login(clock)?;
    let user = network.account()?.me(&network.credential(clock)?).await?;
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

async fn login(network: &Network, username: Username, from: Password, clock: &dyn Clock) -> anyhow::Result<()> {
    let password: Secret = password(from, "Password: ")?;
    let client = Network::client_credentials()?;
    let answer = network.account()?.password_token(&client, &username, &password, &[]).await?;
    let login = Login {
        auth_server: network.auth_server().to_owned(),
        username,
        access_token: answer.access_token,
        expires: clock.now().plus(Duration::from_secs(answer.expires_in)),
    };
    network.files.set_login(&login).context("logged in, but cannot remember it")?;
    let user = network.account()?.me(&network.credential(clock)?).await?;
    say(format_args!("Logged in as {} ({})", user.username, inert(&user.email)))
}

fn logout(network: &Network) -> anyhow::Result<()> {
    say(if network.files.remove_login()? { "Logged out" } else { "You were not logged in" })
}
