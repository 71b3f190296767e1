//! Joins that network brokers forward with a token that they sign themselves.

use api::discovery::Announcement;
use server::{identity::Identity, system::SystemClock};
use tonic::Code;
use types::{Clock, Secret};

use super::{BROKER, linked};
use crate::devices::joins::{
    APP_KEY,
    network_broker::{NetworkBroker, component_token},
    set,
};

const DEV_EUI: &str = "0004A30B001C0599";

fn token(identity: &Identity, id: &str) -> Option<Secret> {
    identity.token(&id.parse().unwrap(), SystemClock.now())
}

// Conformance: The tokens that components sign themselves, verified with the announced key
#[tokio::test(flavor = "multi_thread")]
async fn a_network_broker_is_known_by_the_key_that_it_has_announced() {
    let (network, owner, broker) = linked("known").await;
    set(&owner, "joins", DEV_EUI, APP_KEY).await;
    let own = NetworkBroker::new(&network, token(&broker.identity, BROKER)).await;
    own.join(&owner.app_id, "joins", DEV_EUI, 1).await.expect("it is trusted, and its key is known");

    let other = Identity::load_or_create(&network.dir.path().join("other.pem")).unwrap();
    for (who, token, code) in [
        ("another key", token(&other, BROKER), Code::Unauthenticated),
        ("another broker", token(&broker.identity, "broker-2"), Code::PermissionDenied),
        ("the handler", token(&broker.identity, "handler"), Code::PermissionDenied),
    ] {
        let status = NetworkBroker::new(&network, token).await.challenge(&owner.app_id, "joins", DEV_EUI, 2).await;
        assert_eq!(status.unwrap_err().code(), code, "{who}");
    }
    network.stack.stop().await;
}

// Conformance: The tokens that components sign themselves, verified with the announced key
#[tokio::test(flavor = "multi_thread")]
async fn a_network_broker_without_an_announced_key_is_refused() {
    let (network, owner, identity) = {
        let id = BROKER.parse().unwrap();
        let network = crate::harness::Network::with(|settings| settings.handler.network_brokers = vec![id]).await;
        let owner = network.owner("keyless").await;
        let identity = Identity::load_or_create(&network.dir.path().join("broker.pem")).unwrap();
        (network, owner, identity)
    };
    set(&owner, "joins", DEV_EUI, APP_KEY).await;
    let broker = NetworkBroker::new(&network, token(&identity, BROKER)).await;
    let challenge = async || broker.challenge(&owner.app_id, "joins", DEV_EUI, 1).await.unwrap_err();
    let status = challenge().await;
    assert_eq!(status.code(), Code::PermissionDenied, "it is not announced: {status}");
    assert!(status.message().contains("has announced no public key"), "{status}");
    let component = component_token(&network, "keyless", "brokers", &BROKER.parse().unwrap()).await;
    let announcement = Announcement {
        id: BROKER.to_owned(),
        service_name: "broker".to_owned(),
        net_address: "localhost:1".to_owned(),
        ..Announcement::default()
    };
    let refused = network.discovery().announce(&component, announcement).await.unwrap_err();
    assert!(refused.to_string().contains("PublicKey"), "{refused}");
    assert_eq!(challenge().await.code(), Code::PermissionDenied);
    network.stack.stop().await;
}
