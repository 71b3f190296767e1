//! AMQP: what a real RabbitMQ gets, whatever happens to it and to us.

mod consumer;
mod losses;
mod refusals;

use outputs::{AmqpSettings, Settings};
use serde_json::json;
use testing::{Certificates, RabbitMq};

use self::consumer::Consumer;
use crate::harness::{app_id, in_order, publish, publish_numbers, start, store};

/// Settings of an output to an exchange of its own.
fn settings(rabbitmq: &RabbitMq, exchange: &str) -> AmqpSettings {
    AmqpSettings { url: rabbitmq.url(), exchange: exchange.to_owned(), ..AmqpSettings::default() }
}

/// One node serves all these tests, because starting one takes long.
// Conformance: AMQP 0.9.1: exchange, routing keys and bodies of v2, publisher confirms, TLS
#[tokio::test]
async fn a_broker_gets_messages_as_it_should() {
    let certificates = Certificates::create();
    let Some(rabbitmq) = RabbitMq::start_amqp(&certificates) else { return };
    messages_have_the_form_of_v2(&rabbitmq).await;
    only_what_is_wanted_is_sent_and_in_order(&rabbitmq).await;
    certificates_are_checked(&rabbitmq, &certificates).await;
    the_documented_permissions_suffice(&rabbitmq).await;
    refusals::all(&rabbitmq).await;
}

async fn messages_have_the_form_of_v2(rabbitmq: &RabbitMq) {
    let mut consumer = Consumer::bind(rabbitmq, "ttn.handler", "#").await;
    let outputs = start(&store(), &[settings(rabbitmq, "ttn.handler")], &[], &Settings::default());
    let my_app = app_id("my-app");
    publish(&outputs, &my_app, "dev-1", "up", json!({"payload_raw": "Bw==", "port": 1})).await;
    publish(&outputs, &my_app, "dev-1", "down/sent", json!({"n": 2})).await;
    let up = consumer.next().await;
    assert_eq!((up.key.as_str(), up.body), ("my-app.devices.dev-1.up", json!({"payload_raw": "Bw==", "port": 1})));
    assert_eq!(up.properties.content_type().unwrap(), "application/json");
    assert_eq!(up.properties.delivery_mode(), Some(2), "persistent");
    assert_eq!(up.properties.message_type().unwrap(), "up");
    let sent = consumer.next().await;
    assert_eq!(sent.key, "my-app.devices.dev-1.events.down/sent");
    assert!(sent.properties.message_id() > up.properties.message_id());
    outputs.stop().await;
}

async fn only_what_is_wanted_is_sent_and_in_order(rabbitmq: &RabbitMq) {
    let mut consumer = Consumer::bind(rabbitmq, "some", "#").await;
    let (mine, other) = (app_id("my-app"), app_id("other-app"));
    let some =
        AmqpSettings { applications: vec![mine.clone()], events: vec!["up".to_owned()], ..settings(rabbitmq, "some") };
    let outputs = start(&store(), &[some], &[], &Settings::default());
    publish(&outputs, &other, "dev-1", "up", json!({"n": 1000})).await;
    publish(&outputs, &mine, "dev-1", "activations", json!({"n": 1000})).await;
    tokio::join!(
        publish_numbers(&outputs, &mine, "dev-1", 0..150),
        publish_numbers(&outputs, &mine, "dev-2", 0..150),
        publish_numbers(&outputs, &mine, "dev-3", 0..150),
    );
    let received = consumer.take(450).await;
    for dev_id in ["dev-1", "dev-2", "dev-3"] {
        let key = format!("my-app.devices.{dev_id}.up");
        let numbers = received.iter().filter(|message| message.key == key).map(consumer::Received::number);
        assert_eq!(in_order(numbers), Vec::from_iter(0..150));
    }
    outputs.stop().await;
}

async fn certificates_are_checked(rabbitmq: &RabbitMq, certificates: &Certificates) {
    let mut consumer = Consumer::bind(rabbitmq, "sealed", "#").await;
    let with = |authority: &Certificates| AmqpSettings {
        url: rabbitmq.tls_url(),
        ca_certificate: Some(authority.path("ca.pem")),
        ..settings(rabbitmq, "sealed")
    };
    let outputs = start(&store(), &[with(certificates)], &[], &Settings::default());
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [7]).await;
    assert_eq!(consumer.next().await.number(), 7);
    outputs.stop().await;
    refusals::is_reported(with(&Certificates::create()), "check `ca_certificate`").await;
}

async fn the_documented_permissions_suffice(rabbitmq: &RabbitMq) {
    rabbitmq.control(&["add_user", "airlock", "hush"]);
    let exchange = r"^ttn\.handler$";
    rabbitmq.control(&["set_permissions", "-p", "/", "airlock", exchange, exchange, "^$"]);
    let (connection, channel) = consumer::connect(rabbitmq).await;
    let mut consumer = Consumer::of(connection, channel, "ttn.handler").await;
    let limited = AmqpSettings {
        username: "airlock".to_owned(),
        password_file: Some(rabbitmq.password_file("hush\n")),
        ..settings(rabbitmq, "ttn.handler")
    };
    let outputs = start(&store(), &[limited], &[], &Settings::default());
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [7]).await;
    assert_eq!(consumer.next().await.number(), 7);
    outputs.stop().await;
}
