//! Logs a user in with a password, creates an application, and gives it an access key for a script.
//!
//! `ACCOUNT=http://localhost:8000 USERNAME=alice PASSWORD=… APP_ID=my-app cargo run -p airlock-client --example account`

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "this is a standalone program")]

use std::{env, error::Error};

use airlock_client::{
    account::{AccountClient, ClientCredentials},
    api::rest::account::{NewAccessKey, NewApplication},
    types::{AccessKey, AppId, ApplicationRight, Credential, Scope, Secret, Username},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let account = AccountClient::new(&env::var("ACCOUNT")?)?;
    let (username, password) = (env::var("USERNAME")?.parse()?, Secret::new(env::var("PASSWORD")?));
    let key = run(&account, &username, &password, env::var("APP_ID")?.parse()?).await?;
    println!("{}", key.expose());
    Ok(())
}

/// Returns the new access key.
pub async fn run(
    account: &AccountClient,
    username: &Username,
    password: &Secret,
    app_id: AppId,
) -> Result<AccessKey, Box<dyn Error>> {
    // The public client of Airlock's command line; register your own program with the operator.
    let client = ClientCredentials { id: "airlock".parse()?, secret: Secret::default() };
    let token = account.password_token(&client, username, password, &[]).await?.access_token;

    let new = NewApplication { id: app_id.clone(), name: "Mine".into(), euis: vec![], access_keys: vec![] };
    let application = account.create_application(&Credential::Token(token.clone()), &new).await?;
    println!("{} is reachable at {:?}", application.id, application.euis);

    // Operations on one application need a token for that application.
    let token = Credential::Token(account.restrict_token(&token, &[Scope::App(app_id.clone())]).await?);
    use ApplicationRight::{Devices, MessagesDownWrite, MessagesUpRead, Settings};
    let rights = vec![Settings, Devices, MessagesUpRead, MessagesDownWrite];
    let key = account.add_access_key(&token, &app_id, &NewAccessKey { name: "script".into(), rights }).await?;
    Ok(key.key.ok_or("a new key is shown")?)
}
