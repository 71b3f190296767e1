//! The log has no credentials, and nothing that strangers wrote.

use testing::Log;
use tracing::Level;

use super::ALL_VERSIONS;
use crate::harness::{
    Harness, READ,
    raw_client::{Login, RawClient},
};

// Conformance: Credentials are not in the log, and strangers cannot fill it
#[tokio::test]
async fn credentials_are_not_logged_on_any_level() {
    let (log, _logging) = Log::start(Level::TRACE);
    let harness = Harness::start().await;
    let address = harness.broker.address();
    harness.authenticator.grant("app-one", "account.canary1", &[READ]);
    for version in ALL_VERSIONS {
        for key in ["account.canary1", "account.canary2", "canary3"] {
            let login = Login::new(version, "app-one", key);
            let (mut client, code, _) = RawClient::try_connect(address, &login).await;
            if code == 0 {
                client.subscribe("#").await;
                client.send(&[0x10, 0]).await;
                client.closed().await;
            }
        }
    }
    harness.authenticator.revoke("app-one", "account.canary1");
    harness.broker.check_credentials().await;
    let text = log.text();
    assert!(text.contains("refused an MQTT client"), "the log is looked at: {text}");
    assert!(!text.contains("canary"), "{text}");
}

/// Anybody could fill the log otherwise.
// Conformance: Credentials are not in the log, and strangers cannot fill it
#[tokio::test]
async fn strangers_cannot_write_into_the_log() {
    let (log, _logging) = Log::start(Level::INFO);
    let harness = Harness::start().await;
    let address = harness.broker.address();
    for version in ALL_VERSIONS {
        RawClient::try_connect(address, &Login::new(version, "app-one", "account.wrong")).await;
        RawClient::try_connect(address, &Login::new(version, "no-such-app", "account.wrong")).await;
    }
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x10, 0xff, 0xff, 0xff, 0xff], &[0xc0, 0]] {
        let mut client = RawClient::open(address, 4).await;
        client.send(bytes).await;
        client.closed().await;
    }
    assert_eq!(log.text(), "");
}
