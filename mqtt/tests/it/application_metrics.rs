//! The metrics of single applications.

use std::time::Duration;

use crate::harness::{
    Harness, READ, eventually, publish_up,
    raw_client::{Login, RawClient},
    settings,
};

// Conformance: Metrics of single applications, for a bounded number of them
#[tokio::test]
async fn each_application_has_its_own_connections_and_messages() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let address = harness.broker.address();
    let absent = Login::new(4, "app-one", "account.read").with_client_id("absent").persistent();
    let mut client = RawClient::connect(address, &absent).await;
    client.subscribe("#").await;
    client.disconnect().await;
    let mut clients = Vec::new();
    for (app_id, count) in [("app-one", 2), ("app-two", 1)] {
        for _ in 0..count {
            let mut client = RawClient::connect(address, &Login::new(5, app_id, "account.read")).await;
            client.subscribe("#").await;
            clients.push(client);
        }
    }
    for _ in 0..3 {
        publish_up(&mut handler, "app-one", "x").await;
        for client in &mut clients[..2] {
            client.next().await;
        }
    }
    for client in &mut clients {
        // What it acknowledged before has been read.
        client.ping().await;
    }
    eventually("the end of the connection", async {
        while harness.application_metric("connections", "app-one") != Some(2) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let values = |application| {
        let value = |metric| harness.application_metric(metric, application);
        ["connections", "queued_messages", "delivered_total", "dropped_total"].map(value)
    };
    assert_eq!(values("app-one"), [Some(2), Some(3), Some(6), Some(0)]);
    assert_eq!(values("app-two"), [Some(1), Some(0), Some(0), Some(0)]);
    // The client that is away keeps the newest thousand. What was counted stays when the application has nobody.
    clients.clear();
    for _ in 0..1000 {
        publish_up(&mut handler, "app-one", "x").await;
    }
    assert_eq!(harness.application_metric("dropped_total", "app-one"), Some(3));
    let clean = Login { clean: true, ends: true, ..absent };
    RawClient::connect(address, &clean).await.disconnect().await;
    eventually("the end of everything", async {
        while values("app-one")[..2] != [Some(0), Some(0)] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(harness.application_metric("dropped_total", "app-one"), Some(3));
}

// Conformance: Metrics of single applications, for a bounded number of them
#[tokio::test]
async fn a_bounded_number_of_applications_has_series_and_the_others_are_one() {
    let harness = Harness::start_with(settings()).await;
    let mut handler = harness.handler().await;
    let mut clients = Vec::new();
    for number in 0..130 {
        let app_id: &'static str = Box::leak(format!("bounded-{number}").into_boxed_str());
        harness.authenticator.grant(app_id, "account.read", &[READ]);
        let login = Login::new(4, app_id, "account.read");
        let mut client = RawClient::connect(harness.broker.address(), &login).await;
        client.subscribe("#").await;
        publish_up(&mut handler, app_id, "x").await;
        client.next().await;
        clients.push(client);
    }
    let text = (harness.broker.application_metrics())();
    for metric in ["connections", "delivered_total"] {
        let start = format!("airlock_mqtt_application_{metric}{{");
        let values = text.lines().filter(|line| line.starts_with(&start)).filter_map(|line| line.rsplit_once(' '));
        let values: Vec<u64> = values.map(|(_, value)| value.parse().unwrap()).collect();
        assert_eq!((values.len(), values.iter().sum::<u64>()), (101, 130), "{metric}");
        assert_eq!(harness.application_metric(metric, "_other"), Some(30));
    }
}
