//! A new user's first steps through the client library: register, log in, create, exchange.

use airlock_account::Account;
use api::rest::account::{NewAccessKey, NewApplication, NewUser};
use client::account::{AccountClient, ClientCredentials};
use server::auth::Verifier;
use types::{AppId, ApplicationRight, Claims, Clock, Credential, Scope, Secret, ServiceName};

use crate::service::{PASSWORD, Service};

// Conformance: Users, applications, gateways, components; tokens with scopes and rights
// Conformance: The account client: password, code with PKCE, refresh, restriction, exchange
#[tokio::test]
async fn a_new_user_registers_and_gets_a_working_access_key() {
    for service in Service::start_on_each_store().await {
        walk(&service).await;
    }
}

async fn walk(service: &Service) {
    let client = AccountClient::new(&service.base).unwrap();
    let (username, password) = ("alice".parse().unwrap(), Secret::new(PASSWORD));
    let new = NewUser { username, email: "alice@example.com".to_owned(), password: password.clone() };
    let registered = client.register_user(&new).await.unwrap();
    let program = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
    let response = client.password_token(&program, &new.username, &password, &[]).await.unwrap();
    assert_eq!((response.token_type.as_deref(), response.expires_in), (Some("bearer"), 3600));
    let general = Credential::Token(response.access_token.clone());
    assert_eq!(client.me(&general).await.unwrap(), registered.user);

    let app_id: AppId = "my-app".parse().unwrap();
    let new = NewApplication { id: app_id.clone(), name: "Mine".to_owned(), euis: vec![], access_keys: vec![] };
    let created = client.create_application(&general, &new).await.unwrap();
    assert_eq!(created.euis.len(), 1);
    assert_eq!(created.rights, ApplicationRight::ALL);
    let default = created.access_keys.as_ref().unwrap().first().unwrap();
    assert_eq!(default.name, "default key");
    assert_eq!(client.applications(&general).await.unwrap(), std::slice::from_ref(&created));

    let token = client.restrict_token(&response.access_token, &[Scope::App(app_id.clone())]).await.unwrap();
    let restricted = Credential::Token(token);
    assert_eq!(client.application(&restricted, &app_id).await.unwrap(), created);
    let rights = vec![ApplicationRight::Devices];
    let new = NewAccessKey { name: "register-on-join".to_owned(), rights: rights.clone() };
    let made = client.add_access_key(&restricted, &app_id, &new).await.unwrap();
    let keys = client.access_keys(&restricted, &app_id).await.unwrap();
    assert_eq!(keys, [default.clone(), made.clone()]);

    let exchanged = client.exchange_key(&app_id, made.key.as_ref().unwrap()).await.unwrap();
    let claims = verified(service, &client, &exchanged.access_token).await;
    assert_eq!(claims.apps[&app_id], rights);
    client.delete_access_key(&restricted, &app_id, "register-on-join").await.unwrap();
    assert!(client.exchange_key(&app_id, made.key.as_ref().unwrap()).await.is_err());
    components_exchange_too(service, &service.account, &app_id, default.key.as_ref().unwrap()).await;
}

async fn components_exchange_too(service: &Service, account: &Account, app_id: &AppId, key: &types::AccessKey) {
    let token = account.component_token(ServiceName::Handler, &"handler-1".parse().unwrap()).await.unwrap();
    let client = AccountClient::new(&service.base).unwrap().exchanging_as_component(token.clone());
    let claims = verified(service, &client, &token).await;
    assert!(claims.is_component(ServiceName::Handler, &"handler-1".parse().unwrap()));
    assert!(client.exchange_key(app_id, key).await.is_ok());
}

async fn verified(service: &Service, client: &AccountClient, token: &Secret) -> Claims {
    let keys = client.keys().await.unwrap();
    Verifier::new(service.account.issuer(), &keys).verify(token.expose(), service.clock.now()).unwrap()
}

#[tokio::test]
async fn tokens_stay_valid_after_a_restart() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let again = service.reopen().await;
    assert_eq!(again.get("/api/v2/users/me", &general).await.status, 200);
    assert_eq!(again.get("/key", "").await.text, service.get("/key", "").await.text);
}

#[tokio::test]
async fn refuses_to_start_with_another_key_file() {
    let service = Service::start().await;
    let error = service.reopen_with_key([8; 32]).await.err().unwrap();
    assert!(error.to_string().contains("it was sealed with a different key file"), "{error}");
}
