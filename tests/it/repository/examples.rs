//! The examples of the client crate, against real services.

#![allow(dead_code, unreachable_pub, reason = "as programs they begin elsewhere")]

#[path = "../../../crates/client/examples/account.rs"]
mod account;
#[path = "../../../crates/client/examples/devices.rs"]
mod devices;
#[path = "../../../crates/client/examples/login.rs"]
mod login;
#[path = "../../../crates/client/examples/messages.rs"]
mod messages;

use client::{account::AccountClient, handler::HandlerClient};
use reqwest::Url;
use server::system::OsRandom;
use types::{Credential, Secret};

use crate::{
    delivery::third_party_clients::browser::Browser,
    harness::{Network, PASSWORD},
};

// Conformance: The account client: password, code with PKCE, refresh, restriction, exchange
// Conformance: The discovery and handler clients: every call
#[tokio::test(flavor = "multi_thread")]
async fn the_client_examples_work() {
    let network = Network::start().await;
    let base = network.stack.settings().client.auth_server.clone();
    let (browser, service) = (Browser::register(&base).await, AccountClient::new(&base).unwrap());

    let ask = async |address: String| {
        let shown = Url::parse(&base).unwrap().join(&browser.allow(&address).await).unwrap();
        Ok(shown.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned())
    };
    let alice = login::run(&service, &OsRandom, ask).await.unwrap();
    assert_eq!(alice.as_str(), "alice");

    let app_id = "my-app".parse().unwrap();
    let key = account::run(&service, &alice, &Secret::new(PASSWORD), "my-app".parse().unwrap()).await.unwrap();
    let key = Credential::Key(key);
    let announced = network.announcement().await;
    let handler = HandlerClient::connect(&announced, key.clone()).unwrap();
    handler.register_application(&app_id).await.unwrap();
    let fields = devices::run(&handler, &app_id, &OsRandom).await.unwrap();
    assert_eq!(fields, r#"{"temperature":23.96}"#);

    let uplink = messages::run(&announced, &app_id, &"thermometer".parse().unwrap(), key).await.unwrap();
    assert_eq!(uplink.payload_fields.unwrap().get(), fields);
    network.stack.stop().await;
}
