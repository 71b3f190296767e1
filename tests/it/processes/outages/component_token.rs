//! The handler's own token is no longer accepted: it gets a new one without a restart.

use std::path::Path;

use client::{
    account::{AccountClient, ClientCredentials},
    data::DataClient,
};
use types::{AppId, Credential, Scope, Secret};

use super::{Caller, account::Services, soon};
use crate::harness::{Network, PASSWORD, airlock, printed, run};

/// Rotates the signing key of the server with this data directory, which makes every token invalid.
fn rotate_at_once(dir: &Path) {
    printed(&run(airlock(dir).args(["account", "keys", "rotate", "--at-once", "--yes"]), ""));
}

/// Logs a user in again, whose tokens have become invalid.
pub(super) async fn log_in_again(account: &AccountClient, name: &str, app_id: &AppId) -> Credential {
    let client = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
    let token = account.password_token(&client, &name.parse().unwrap(), &Secret::new(PASSWORD), &[]).await.unwrap();
    let token = account.restrict_token(&token.access_token, &[Scope::App(app_id.clone())]).await.unwrap();
    Credential::Token(token)
}

/// Waits until the account service has noticed that its key was rotated, and refuses this old token.
async fn until_rotated(account: &AccountClient, old: &Credential) {
    soon(false, async || account.me(old).await.is_err_and(|error| is_about_the_scope(&error))).await;
}

/// A token of an application may not read its user's profile; an invalid one may do nothing.
fn is_about_the_scope(error: &client::Error) -> bool {
    types::Kinded::kind(error) == types::Kind::Denied
}

#[tokio::test(flavor = "multi_thread")]
async fn access_keys_work_after_all_tokens_became_invalid() {
    let network = Network::start().await;
    let owner = network.owner("rotated").await;
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let mut open = owner.listen(&network).await;
    owner.add_device("dev-1").await;
    rotate_at_once(network.dir.path());
    until_rotated(&account, &owner.token).await;

    // Meanwhile the handler's own token is refused, and the calls with a key must not suffer from that.
    let url = format!("{}/applications/{}/devices", network.handler_http(), owner.app_id);
    let key = Credential::Key(owner.key.clone());
    assert_eq!(Caller::new(&key).ask("GET", &url, String::new()).await.0, 403, "the key is known, but may not do this");
    DataClient::connect(&network.mqtt(), &owner.app_id, &key).await.unwrap();
    let token = log_in_again(&account, "rotated", &owner.app_id).await;
    soon(200, async || {
        let body = serde_json::json!({"payload": "Bw==", "port": 1}).to_string();
        Caller::new(&token).ask("POST", &format!("{url}/dev-1/simulate"), body).await.0
    })
    .await;
    crate::harness::next(&mut open).await;
    let wrong = Credential::Key("airlock-account.wrong".parse().unwrap());
    assert_eq!(Caller::new(&wrong).ask("GET", &url, String::new()).await.0, 401);
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_in_the_same_process_replaces_its_revoked_token() {
    let network = Network::start().await;
    let token_file = network.dir.path().join("handler.token");
    let before = std::fs::read_to_string(&token_file).unwrap();
    let id = network.stack.settings().handler.id.to_string();
    printed(&run(airlock(network.dir.path()).args(["account", "components", "revoke", &id]), ""));
    soon(true, async || std::fs::read_to_string(&token_file).unwrap() != before).await;
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_elsewhere_is_not_ready_until_it_has_the_new_token() {
    let services = Services::start(600).await;
    assert_eq!(services.readiness().await, (200, "ok".to_owned()));
    let before = std::fs::read_to_string(services.account.token_file()).unwrap();
    rotate_at_once(services.account.dir());
    soon(true, async || std::fs::read_to_string(services.account.token_file()).unwrap() != before).await;
    let owner = log_in_again(&services.accounts(), "steady", &services.owner.app_id).await;
    let key = services.new_key("after", &owner).await;
    assert_eq!(services.read(&key).await, 503, "the key is right, the handler is not accepted");
    let (status, reason) = services.readiness().await;
    assert!(status == 503 && reason.contains("copy handler.token"), "{status} {reason}");

    services.account.copy_token(services.network.dir.path());
    soon(200, async || services.read(&key).await).await;
    assert_eq!(services.readiness().await, (200, "ok".to_owned()));
    services.stop().await;
}
