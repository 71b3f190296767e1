//! The client library against the service, call by call.

use api::rest::account::{GatewayUpdate, NewAccessKey, NewApplication, NewGateway, NewUser, ProfileChange};
use client::account::{AccountClient, ClientCredentials};
use types::{ApplicationRight, Credential, FullName, GatewayRight, Kind, Kinded, Scope, Secret};

use crate::service::{PASSWORD, Service};

struct Program {
    client: AccountClient,
    token: Secret,
}

impl Program {
    async fn start(service: &Service) -> Self {
        let client = AccountClient::new(&service.base).unwrap();
        for name in ["bob", "alice"] {
            let (username, email) = (name.parse().unwrap(), format!("{name}@example.com"));
            client.register_user(&NewUser { username, email, password: Secret::new(PASSWORD) }).await.unwrap();
        }
        let id = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
        let alice = "alice".parse().unwrap();
        let response = client.password_token(&id, &alice, &Secret::new(PASSWORD), &[]).await.unwrap();
        Self { client, token: response.access_token }
    }

    fn general(&self) -> Credential {
        Credential::Token(self.token.clone())
    }

    async fn with(&self, scope: &str) -> Credential {
        let scope: Scope = scope.parse().unwrap();
        Credential::Token(self.client.restrict_token(&self.token, &[scope]).await.unwrap())
    }
}

// Conformance: The account client: profile, applications, EUIs, access keys, collaborators
#[tokio::test]
async fn a_program_manages_the_profile() {
    let service = Service::start().await;
    let program = Program::start(&service).await;
    let name = FullName { first: Some("Alice".to_owned()), last: None };
    let change = ProfileChange { name: Some(name.clone()), ..ProfileChange::default() };
    program.client.update_me(&program.general(), &change).await.unwrap();
    assert_eq!(program.client.me(&program.general()).await.unwrap().name, name);
}

// Conformance: The account client: profile, applications, EUIs, access keys, collaborators
#[tokio::test]
async fn a_program_manages_applications() {
    let service = Service::start().await;
    let program = Program::start(&service).await;
    let (client, general, app_id) = (&program.client, program.general(), "my-app".parse().unwrap());
    let new = NewApplication { id: "my-app".parse().unwrap(), name: "Mine".into(), euis: vec![], access_keys: vec![] };
    let first = client.create_application(&general, &new).await.unwrap().euis[0];
    let mine = program.with("apps:my-app").await;
    client.rename_application(&mine, &app_id, "Still mine").await.unwrap();
    assert_eq!(client.application(&mine, &app_id).await.unwrap().name, "Still mine");

    let (drawn, own) = (client.create_eui(&mine, &app_id).await.unwrap(), "0102030405060708".parse().unwrap());
    client.add_eui(&mine, &app_id, own).await.unwrap();
    client.delete_eui(&mine, &app_id, first).await.unwrap();
    assert_eq!(client.euis(&mine, &app_id).await.unwrap(), [drawn, own]);

    let key = NewAccessKey { name: "a key/?".to_owned(), rights: vec![ApplicationRight::Devices] };
    let made = client.add_access_key(&mine, &app_id, &key).await.unwrap();
    assert_eq!(client.access_key(&mine, &app_id, "a key/?").await.unwrap(), made);
    assert_eq!(client.rights(&mine, &app_id).await.unwrap(), ApplicationRight::ALL);

    client.delete_application(&mine, &app_id).await.unwrap();
    assert_eq!(client.applications(&general).await.unwrap(), []);
    assert!(client.applications_and_deleted(&general).await.unwrap()[0].deleted.is_some());
    client.restore_application(&mine, &app_id).await.unwrap();
    assert_eq!(client.applications(&general).await.unwrap().len(), 1);
}

// Conformance: The account client: profile, applications, EUIs, access keys, collaborators
#[tokio::test]
async fn a_program_manages_gateways_and_collaborators() {
    let service = Service::start().await;
    let program = Program::start(&service).await;
    let (client, id, bob) = (&program.client, "gw-1".parse().unwrap(), "bob".parse().unwrap());
    let settings = GatewayUpdate { frequency_plan: Some("EU_863_870".to_owned()), ..GatewayUpdate::default() };
    let new = NewGateway { id: "gw-1".parse().unwrap(), settings };
    let key = client.create_gateway(&program.general(), &new).await.unwrap().key.unwrap();
    let mine = program.with("gateways:gw-1").await;
    let update = GatewayUpdate { auto_update: Some(true), ..GatewayUpdate::default() };
    client.update_gateway(&mine, &id, &update).await.unwrap();
    let gateway = client.gateway(&mine, &id).await.unwrap();
    assert!(gateway.auto_update && !gateway.activated);
    assert_eq!(client.gateways(&program.general()).await.unwrap()[0].id, id);
    let token = client.gateway_token(&Credential::Key(key), &id).await.unwrap();
    assert!(token.expires_in > 0 && client.gateway(&mine, &id).await.unwrap().activated);

    assert_eq!(client.rights(&mine, &id).await.unwrap(), GatewayRight::ALL);
    client.set_collaborator(&mine, &id, &bob, &[GatewayRight::Status]).await.unwrap();
    assert_eq!(client.collaborator(&mine, &id, &bob).await.unwrap().rights, [GatewayRight::Status]);
    assert_eq!(client.collaborators(&mine, &id).await.unwrap().len(), 2);
    client.delete_collaborator(&mine, &id, &bob).await.unwrap();
    assert_eq!(client.collaborator(&mine, &id, &bob).await.unwrap_err().kind(), Kind::NotFound);
    client.delete_gateway(&mine, &id).await.unwrap();
    assert_eq!(client.gateway(&mine, &id).await.unwrap_err().kind(), Kind::NotFound);
}
