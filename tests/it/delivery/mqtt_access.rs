//! MQTT clients with credentials of the account service: who is refused, with which code, and who loses access.

use std::time::Duration;

use api::rest::account::NewAccessKey;
use client::account::AccountClient;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use types::{AppId, ApplicationRight, Credential};

use crate::harness::{MESSAGE_TIMEOUT, Network, Owner};

const ACCEPTED: u8 = 0;
const BAD_CREDENTIALS: u8 = 4;
const NOT_AUTHORIZED: u8 = 5;

/// Connects with MQTT 3.1.1; returns the connection and the code of the CONNACK.
async fn connect(network: &Network, app_id: &AppId, password: &str) -> (TcpStream, u8) {
    let mut body = b"\x00\x04MQTT\x04\xc2\x00\x3c".to_vec();
    for text in ["", app_id.as_str(), password] {
        body.extend((text.len() as u16).to_be_bytes());
        body.extend(text.as_bytes());
    }
    // Tokens are so long that the length always has two bytes.
    let length = [(body.len() & 0x7f) as u8 | 0x80, (body.len() >> 7) as u8];
    let mut connection = TcpStream::connect(network.mqtt()).await.unwrap();
    connection.write_all(&[&[0x10], &length[..], &body].concat()).await.unwrap();
    let mut connack = [0; 4];
    connection.read_exact(&mut connack).await.unwrap();
    (connection, connack[3])
}

fn password(credential: &Credential) -> String {
    match credential {
        Credential::Key(key) => key.expose().to_owned(),
        Credential::Token(token) => token.expose().to_owned(),
    }
}

async fn key(network: &Network, owner: &Owner, right: ApplicationRight) -> String {
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let new = NewAccessKey { name: right.as_str().replace(':', "-"), rights: vec![right] };
    account.add_access_key(&owner.token, &owner.app_id, &new).await.unwrap().key.unwrap().expose().to_owned()
}

// Conformance: Wrong, empty, missing, expired and foreign credentials
#[tokio::test(flavor = "multi_thread")]
async fn every_credential_gets_the_code_that_says_why() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (owner, other) = (network.owner("alice").await, network.owner("bob").await);
    let app_id = &owner.app_id;
    for (shown, expected, what) in [
        (owner.key.expose().to_owned(), ACCEPTED, "a key that may read"),
        (key(&network, &owner, ApplicationRight::MessagesDownWrite).await, ACCEPTED, "a key that may write"),
        (password(&owner.token), ACCEPTED, "the owner's token"),
        (key(&network, &owner, ApplicationRight::Settings).await, NOT_AUTHORIZED, "a key without a right to messages"),
        (password(&other.token), NOT_AUTHORIZED, "another user's token"),
        (other.key.expose().to_owned(), BAD_CREDENTIALS, "another application's key"),
        (format!("{}x", owner.key.expose()), BAD_CREDENTIALS, "a key that does not exist"),
        (format!("{}x", password(&owner.token)), BAD_CREDENTIALS, "a token that was changed"),
        (String::new(), BAD_CREDENTIALS, "nothing"),
    ] {
        assert_eq!(connect(&network, app_id, &shown).await.1, expected, "{what}");
    }
    clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(connect(&network, app_id, &password(&owner.token)).await.1, BAD_CREDENTIALS, "an expired token");
    network.stack.stop().await;
}

// Conformance: A deleted application, a revoked or changed right
#[tokio::test(flavor = "multi_thread")]
async fn the_clients_of_a_deleted_application_are_disconnected() {
    let network = Network::with(|settings| settings.broker.check_interval_ms = 100).await;
    let (owner, other) = (network.owner("alice").await, network.owner("bob").await);
    let (mut connection, code) = connect(&network, &owner.app_id, owner.key.expose()).await;
    assert_eq!(code, ACCEPTED);
    let mut listener = other.listen(&network).await;
    other.add_device("dev-1").await;
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    account.delete_application(&owner.token, &owner.app_id).await.unwrap();
    let closed = async { connection.read(&mut [0; 64]).await.unwrap() };
    assert_eq!(tokio::time::timeout(MESSAGE_TIMEOUT, closed).await.unwrap(), 0);
    assert_eq!(connect(&network, &owner.app_id, owner.key.expose()).await.1, BAD_CREDENTIALS);
    // Others do not notice.
    other.simulate("dev-1", &[1], 1).await.unwrap();
    assert_eq!(crate::harness::next(&mut listener).await.0, "dev-1/up");
    network.stack.stop().await;
}

// Conformance: A restored application: its clients may connect again
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_application_is_refused_until_it_is_restored() {
    let network = Network::with(|settings| settings.broker.check_interval_ms = 100).await;
    let owner = network.owner("alice").await;
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    assert_eq!(crate::harness::next(&mut listener).await.0, "dev-1/up");
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    account.delete_application(&owner.token, &owner.app_id).await.unwrap();
    let refused = async {
        while owner.simulate("dev-1", &[2], 1).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while connect(&network, &owner.app_id, owner.key.expose()).await.1 != BAD_CREDENTIALS {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(MESSAGE_TIMEOUT, refused).await.expect("the deletion takes effect");
    account.restore_application(&owner.token, &owner.app_id).await.unwrap();
    let accepted = async {
        while connect(&network, &owner.app_id, owner.key.expose()).await.1 != ACCEPTED {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(MESSAGE_TIMEOUT, accepted).await.expect("clients may connect again");
    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[3], 1).await.unwrap();
    let (topic, up) = crate::harness::next(&mut listener).await;
    assert_eq!((topic.as_str(), &up["payload_raw"]), ("dev-1/up", &serde_json::json!("Aw==")));
    network.stack.stop().await;
}
