//! The signing key is rotated with grace: old and new tokens are valid. `component_token.rs` rotates it at once.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use client::account::AccountClient;
use types::Credential;

use super::{Caller, component_token::log_in_again};
use crate::harness::{Network, airlock, next, printed, run};

/// The id of the key that signed a token.
fn key_id(token: &Credential) -> String {
    let Credential::Token(token) = token else { panic!("users have tokens") };
    let header = URL_SAFE_NO_PAD.decode(token.expose().split('.').next().unwrap()).unwrap();
    serde_json::from_slice::<serde_json::Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_rotation_refuses_nothing() {
    // The command that rotates the key has the machine's clock.
    let (network, clock) = Network::with_clock(|_| ()).await;
    let owner = network.owner("planned").await;
    owner.set_functions(["function Decoder(bytes) { return { n: bytes[0] }; }", "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    printed(&run(airlock(network.dir.path()).args(["account", "keys", "rotate"]), ""));

    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    clock.advance(Duration::from_secs(45 * 60));
    let early = log_in_again(&account, "planned", &owner.app_id).await;
    assert_eq!(key_id(&early), key_id(&owner.token), "the new key does not sign yet");
    clock.advance(Duration::from_secs(30 * 60));
    let late = log_in_again(&account, "planned", &owner.app_id).await;
    assert_ne!(key_id(&late), key_id(&early), "the new key signs");

    let url = format!("{}/applications/planned-app", network.handler_http());
    for token in [&early, &late] {
        let (status, application) = Caller::new(token).ask("GET", &url, String::new()).await;
        assert!(status == 200 && application["decoder"].as_str().unwrap().contains("bytes[0]"), "{application}");
        let uplink = serde_json::json!({"payload": "Bw==", "port": 1}).to_string();
        let simulate = format!("{url}/devices/dev-1/simulate");
        assert_eq!(Caller::new(token).ask("POST", &simulate, uplink).await.0, 200);
        assert_eq!(next(&mut listener).await.0, "dev-1/up", "the open connection goes on");
    }
    network.stack.stop().await;
}
