//! The MQTT client of the `client` crate against the broker.

use client::mqtt::MqttClient;
use testing::Proxy;
use types::{Credential, Kind, Kinded, Secret};

use crate::harness::{Harness, eventually, publish_up};

fn key(text: &str) -> Credential {
    Credential::Key(text.parse().unwrap())
}

#[tokio::test]
async fn receives_messages_of_its_application() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let app_id = "app-one".parse().unwrap();
    let mut listener = MqttClient::connect(&harness.address(), &app_id, &key("account.read")).await.unwrap();
    listener.subscribe("app-one/devices/+/up").await.unwrap();
    publish_up(&mut handler, "app-two", "foreign").await;
    publish_up(&mut handler, "app-one", "own").await;
    let message = eventually("a message", listener.next()).await.unwrap();
    assert_eq!((message.topic.as_str(), message.payload.as_slice()), ("app-one/devices/dev/up", &b"own"[..]));
}

#[tokio::test]
async fn reports_why_it_was_refused() {
    let harness = Harness::start().await;
    let app_id = "app-one".parse().unwrap();
    for credential in [key("account.wrong"), Credential::Token(Secret::new("ey.no.token"))] {
        let error = MqttClient::connect(&harness.address(), &app_id, &credential).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unauthenticated, "{error}");
    }
    harness.authenticator.set_unavailable(true);
    let error = MqttClient::connect(&harness.address(), &app_id, &key("account.read")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
    harness.authenticator.set_unavailable(false);

    let mut listener = MqttClient::connect(&harness.address(), &app_id, &key("account.read")).await.unwrap();
    let error = listener.subscribe("app-two/devices/+/up").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    let error = listener.subscribe("app-one/#/up").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    listener.subscribe("app-one/devices/+/up").await.unwrap();
}

#[tokio::test]
async fn reports_that_the_broker_is_unreachable() {
    let app_id = "app-one".parse().unwrap();
    let nowhere = Proxy::start(None).await;
    let error = MqttClient::connect(&nowhere.address.to_string(), &app_id, &key("account.read")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
    for address in ["", "http://localhost:1883", "mqtts:/localhost", ":1883"] {
        let error = MqttClient::connect(address, &app_id, &key("account.read")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{address}: {error}");
    }
}

#[tokio::test]
async fn reconnects_with_its_subscriptions() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let app_id = "app-one".parse().unwrap();
    let proxy = Proxy::start(Some(harness.broker.address())).await;
    let mut listener = MqttClient::connect(&proxy.address.to_string(), &app_id, &key("account.read")).await.unwrap();
    listener.subscribe("+/devices/+/up").await.unwrap();
    proxy.redirect(Some(harness.broker.address()));
    // It may miss some of them while it reconnects.
    let publish = async {
        loop {
            publish_up(&mut handler, "app-one", "again").await;
            tokio::task::yield_now().await;
        }
    };
    let arrived = tokio::select! {
        message = eventually("a message after the connection broke", listener.next()) => message.unwrap(),
        () = publish => unreachable!(),
    };
    assert_eq!(arrived.payload, b"again");
}

#[tokio::test]
async fn ends_when_its_key_is_revoked() {
    let harness = Harness::start().await;
    let app_id = "app-one".parse().unwrap();
    let mut listener = MqttClient::connect(&harness.address(), &app_id, &key("account.read")).await.unwrap();
    listener.subscribe("#").await.unwrap();
    harness.authenticator.revoke("app-one", "account.read");
    harness.broker.check_credentials().await;
    let error = eventually("the end", listener.next()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unauthenticated, "{error}");
}
