//! The data client of the `client` crate against the broker.

use client::data::{DataClient, Topics};
use testing::Proxy;
use types::{Credential, Kind, Kinded, Secret};

use crate::harness::{Harness, eventually};

fn key(text: &str) -> Credential {
    Credential::Key(text.parse().unwrap())
}

#[tokio::test]
async fn reports_why_it_was_refused() {
    let harness = Harness::start().await;
    let app_id = "app-one".parse().unwrap();
    for credential in [key("account.wrong"), Credential::Token(Secret::new("ey.no.token"))] {
        let error = DataClient::connect(&harness.address(), &app_id, &credential).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unauthenticated, "{error}");
    }
    harness.authenticator.set_unavailable(true);
    let error = DataClient::connect(&harness.address(), &app_id, &key("account.read")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
}

#[tokio::test]
async fn reports_that_the_broker_is_unreachable() {
    let app_id = "app-one".parse().unwrap();
    let nowhere = Proxy::start(None).await;
    let error = DataClient::connect(&nowhere.address.to_string(), &app_id, &key("account.read")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
    for address in ["", "http://localhost:1883", "mqtts:/localhost", ":1883"] {
        let error = DataClient::connect(address, &app_id, &key("account.read")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{address}: {error}");
    }
}

#[tokio::test]
async fn ends_when_its_key_is_revoked() {
    let harness = Harness::start().await;
    let app_id = "app-one".parse().unwrap();
    let client = DataClient::connect(&harness.address(), &app_id, &key("account.read")).await.unwrap();
    let mut uplinks = client.stream(Topics::uplinks()).await.unwrap();
    harness.authenticator.revoke("app-one", "account.read");
    harness.broker.check_credentials().await;
    let error = eventually("the end", uplinks.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), Kind::Unauthenticated, "{error}");
}
