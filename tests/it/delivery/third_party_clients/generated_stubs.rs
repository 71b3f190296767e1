//! Every call through code that The Things Network generated, with every kind of credential.

use client::account::{AccountClient, ClientCredentials};
use serde_json::{Value, json};
use types::{Scope, Secret};

use super::python_sdk::{full_key, python, run};
use crate::harness::{Network, PASSWORD, printed};

/// Requests to the account service over HTTP.
struct Registrations {
    account: AccountClient,
    url: String,
    general: Secret,
}

impl Registrations {
    async fn of(network: &Network, username: &str) -> Self {
        let url = network.stack.settings().client.auth_server.clone();
        let account = AccountClient::new(&url).unwrap();
        let client = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
        let (username, password) = (username.parse().unwrap(), Secret::new(PASSWORD));
        let response = account.password_token(&client, &username, &password, &[]).await.unwrap();
        Self { account, url, general: response.access_token }
    }

    async fn component(&self, services: &str, id: &str) -> String {
        self.create(&format!("components/{services}"), json!({ "id": id })).await;
        let token = self.account.restrict_token(&self.general, &[Scope::Component(id.parse().unwrap())]).await.unwrap();
        let request = reqwest::Client::new().get(format!("{}/api/v2/components/{services}/{id}/token", self.url));
        let response: Value = request.bearer_auth(token.expose()).send().await.unwrap().json().await.unwrap();
        response["token"].as_str().unwrap().to_owned()
    }

    async fn gateway(&self, id: &str) -> String {
        self.create("gateways", json!({"id": id, "frequency_plan": "EU_863_870"})).await;
        let token = self.account.restrict_token(&self.general, &[Scope::Gateway(id.parse().unwrap())]).await.unwrap();
        token.expose().to_owned()
    }

    async fn create(&self, what: &str, body: Value) {
        let request = reqwest::Client::new().post(format!("{}/api/v2/{what}", self.url)).json(&body);
        let response = request.bearer_auth(self.general.expose()).send().await.unwrap();
        assert_eq!(response.status(), 201, "{what}: {}", response.text().await.unwrap());
    }
}

// Conformance: Every call and every message field
#[tokio::test(flavor = "multi_thread")]
async fn every_call_works_with_the_generated_code_of_v2() {
    let Some(python) = python() else { return };
    let network = Network::start().await;
    let owner = network.owner("generated").await;
    let registrations = Registrations::of(&network, "generated").await;
    let token = std::fs::read_to_string(network.dir.path().join("handler.token")).unwrap();
    let environment = vec![
        ("HANDLER", network.stack.handler_http_address().unwrap().to_string()),
        ("DISCOVERY", network.stack.discovery_http_address().unwrap().to_string()),
        ("HANDLER_ID", network.stack.settings().client.handler_id.to_string()),
        ("APP_ID", owner.app_id.to_string()),
        ("GATEWAY_ID", "gateway-1".to_owned()),
        ("ACCESS_KEY", String::from(full_key(&network, &owner).await)),
        ("GATEWAY_TOKEN", registrations.gateway("gateway-1").await),
        ("HANDLER_TOKEN", token.trim().to_owned()),
        ("ROUTER_TOKEN", registrations.component("routers", "router-1").await),
        ("BROKER_TOKEN", registrations.component("brokers", "broker-1").await),
    ];
    assert!(printed(&run(python, "stubs.py", environment).await).ends_with("done\n"));
    network.stack.stop().await;
}
