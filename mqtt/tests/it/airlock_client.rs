//! The data client against the broker.

use client::data::DataClient;
use types::{Credential, Kind, Kinded, Secret};

use crate::{
    proxy::Proxy,
    stage::{Stage, publish_up, soon},
};

fn key(text: &str) -> Credential {
    Credential::Key(text.parse().unwrap())
}

#[tokio::test]
async fn it_hears_its_application() {
    let stage = Stage::set().await;
    let output = stage.output().await;
    let app_id = "app-one".parse().unwrap();
    let mut listener = DataClient::connect(&stage.address(), &app_id, &key("account.read")).await.unwrap();
    listener.subscribe("app-one/devices/+/up").await.unwrap();
    publish_up(&output, "app-two", "foreign");
    publish_up(&output, "app-one", "own");
    let message = soon("a message", listener.next()).await.unwrap();
    assert_eq!((message.topic.as_str(), message.payload.as_slice()), ("app-one/devices/dev/up", &b"own"[..]));
}

#[tokio::test]
async fn it_says_what_was_refused_and_by_whom() {
    let stage = Stage::set().await;
    let app_id = "app-one".parse().unwrap();
    for credential in [key("account.wrong"), Credential::Token(Secret::new("ey.no.token"))] {
        let error = DataClient::connect(&stage.address(), &app_id, &credential).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unauthenticated, "{error}");
    }
    stage.keys.set_away(true);
    let error = DataClient::connect(&stage.address(), &app_id, &key("account.read")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
    stage.keys.set_away(false);

    let mut listener = DataClient::connect(&stage.address(), &app_id, &key("account.read")).await.unwrap();
    let error = listener.subscribe("app-two/devices/+/up").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    let error = listener.subscribe("app-one/#/up").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    listener.subscribe("app-one/devices/+/up").await.unwrap();
}

#[tokio::test]
async fn it_says_that_nobody_is_there() {
    let app_id = "app-one".parse().unwrap();
    let nowhere = Proxy::to(None).await;
    let error = DataClient::connect(&nowhere.address.to_string(), &app_id, &key("account.read")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
    for address in ["", "http://localhost:1883", "mqtts:/localhost", ":1883"] {
        let error = DataClient::connect(address, &app_id, &key("account.read")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{address}: {error}");
    }
}

#[tokio::test]
async fn it_comes_back_with_its_subscriptions() {
    let stage = Stage::set().await;
    let output = stage.output().await;
    let app_id = "app-one".parse().unwrap();
    let proxy = Proxy::to(Some(stage.broker.address())).await;
    let mut listener = DataClient::connect(&proxy.address.to_string(), &app_id, &key("account.read")).await.unwrap();
    listener.subscribe("+/devices/+/up").await.unwrap();
    proxy.lead(Some(stage.broker.address()));
    // It may miss some while it is away, so there is more than one.
    let publish = async {
        loop {
            publish_up(&output, "app-one", "again");
            tokio::task::yield_now().await;
        }
    };
    let arrived = tokio::select! {
        message = soon("a message after the connection broke", listener.next()) => message.unwrap(),
        () = publish => unreachable!(),
    };
    assert_eq!(arrived.payload, b"again");
}

#[tokio::test]
async fn it_ends_when_its_key_is_gone() {
    let stage = Stage::set().await;
    let app_id = "app-one".parse().unwrap();
    let mut listener = DataClient::connect(&stage.address(), &app_id, &key("account.read")).await.unwrap();
    listener.subscribe("#").await.unwrap();
    stage.keys.revoke("app-one", "account.read");
    stage.broker.check().await;
    let error = soon("the end", listener.next()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unauthenticated, "{error}");
}
