//! Logs a user in with a browser: prints the authorization URL, takes the code, and prints the user's name.
//!
//! `ACCOUNT=http://localhost:8000 cargo run -p airlock-client --example login`

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "this is a standalone program"
)]

use std::{env, error::Error, io};

use airlock_client::{
    account::{AccountClient, AuthorizationCode, ClientCredentials, CodeVerifier},
    types::{Credential, Random, Secret, Username},
};

/// Path at which the account service displays the code; a web site would read it from the query instead.
const REDIRECT_URI: &str = "/oauth/callback/airlock";

struct System;

impl Random for System {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let account = AccountClient::new(&env::var("ACCOUNT")?)?;
    let ask = async |address: String| {
        println!("Open {address}\nand type the code that you are shown:");
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line.trim().to_owned())
    };
    println!("Logged in as {}", run(&account, &System, ask).await?);
    Ok(())
}

/// Returns the name of the user; `ask` takes a URL and returns the code.
pub async fn run(
    account: &AccountClient,
    random: &dyn Random,
    ask: impl AsyncFnOnce(String) -> io::Result<String>,
) -> Result<Username, Box<dyn Error>> {
    let client = ClientCredentials { id: "airlock".parse()?, secret: Secret::default() };
    let verifier = CodeVerifier::new(random);
    let address = account.authorize_url(&client.id, REDIRECT_URI, &verifier);

    let code = Secret::new(ask(address.into()).await?);
    let code = AuthorizationCode { code, redirect_uri: REDIRECT_URI.to_owned(), verifier: Some(verifier) };
    let first = account.code_token(&client, code).await?;

    // The token expires within an hour; this returns the next one.
    let refresh_token = first.refresh_token.ok_or("a login can be continued")?;
    let next = account.refresh_token(&client, &refresh_token).await?;
    Ok(account.me(&Credential::Token(next.access_token)).await?.username)
}
