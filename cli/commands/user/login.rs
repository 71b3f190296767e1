//! `airlock user login`: with a password, or with a code that the account site shows.
//!
//! The code is worth something only together with a verifier, which is kept from when the address was printed until
//! the code is redeemed. So it does not matter whether the code is typed at once or given to a later command.

use anyhow::{Context, bail};
use api::rest::account::TokenAnswer;
use client::account::{AuthorizationCode, Verifier};
use types::{Clock, Credential, Random, Secret, Username};

use super::args::{LoginBy, Password};
use crate::{
    network::Network,
    session::{Begun, Login},
    terminal::{ask, inert, password, say},
};

/// Where the account site shows the code.
const REDIRECT_URI: &str = "/oauth/callback/airlock";

/// Logs in with a name and a password.
pub(super) async fn with_password(
    network: &Network,
    username: Username,
    from: Password,
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    let password = password(from, "Password: ")?;
    let client = Network::client_credentials()?;
    let answer = network.account()?.password_token(&client, &username, &password, &[]).await?;
    finish(network, answer, clock).await
}

/// Prints where a code is got, and takes it when it is typed.
pub(super) async fn begin(network: &Network, clock: &dyn Clock, random: &dyn Random) -> anyhow::Result<()> {
    let verifier = Verifier::new(random);
    let client = Network::client_credentials()?;
    let url = network.account()?.authorize_url(&client.id, REDIRECT_URI, &verifier);
    let begun = Begun { auth_server: network.auth_server().to_owned(), verifier: verifier.secret().clone() };
    network.files.set_begun(&begun)?;
    say(format_args!("Open this address in a browser, log in there, and let this program act for you:\n\n{url}\n"))?;
    let typed = ask("Access code: ")?;
    match typed.parse() {
        Ok(LoginBy::Code(code)) => with_code(network, code, clock).await,
        _ if typed.is_empty() => say("\nGive the access code to `airlock user login <code>` when you have it"),
        _ => bail!("this is no access code: it has 38 characters, and the page of that address shows it"),
    }
}

/// Redeems a code that was got at the address printed last.
pub(super) async fn with_code(network: &Network, code: Secret, clock: &dyn Clock) -> anyhow::Result<()> {
    let begun = network.files.begun()?.filter(|begun| begun.auth_server == network.auth_server());
    let begun = begun.context("get the code at the address that `airlock user login` prints")?;
    let code = AuthorizationCode {
        code,
        redirect_uri: REDIRECT_URI.to_owned(),
        verifier: Verifier::from_secret(begun.verifier),
    };
    let answer = network.account()?.code_token(&Network::client_credentials()?, code).await?;
    finish(network, answer, clock).await?;
    network.files.remove_begun().map(drop)
}

/// Remembers the login, and says as whom.
async fn finish(network: &Network, answer: TokenAnswer, clock: &dyn Clock) -> anyhow::Result<()> {
    let user = network.account()?.me(&Credential::Token(answer.access_token.clone())).await?;
    let login = Login::new(network.auth_server(), user.username, answer, clock);
    network.files.set_login(&login).context("logged in, but cannot remember it")?;
    say(format_args!("Logged in as {} ({})", login.username, inert(&user.email)))
}
