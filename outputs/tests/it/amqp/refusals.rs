//! A broker that refuses: what waits, what is given up, and what the log says.

use amqprs::{FieldTable, FieldValue};
use outputs::{AmqpSettings, Settings};
use serde_json::json;
use testing::{Log, RABBITMQ_MESSAGE_BYTES_MAX, RabbitMq};
use tracing::Level;

use super::{
    consumer::{Consumer, bind_queue, connect, declare_exchange, delete_exchange, take_one},
    settings,
};
use crate::harness::{app_id, count, publish, publish_numbers, start, store};

pub async fn all(rabbitmq: &RabbitMq) {
    what_the_broker_never_takes_becomes_a_dead_letter(rabbitmq).await;
    what_the_broker_cannot_take_now_waits(rabbitmq).await;
    a_deleted_exchange_is_declared_again(rabbitmq).await;
    wrong_settings_are_named(rabbitmq).await;
}

async fn what_the_broker_never_takes_becomes_a_dead_letter(rabbitmq: &RabbitMq) {
    let mut consumer = Consumer::bind(rabbitmq, "large", "#").await;
    let (store, my_app) = (store(), app_id("my-app"));
    let outputs = start(&store, &[settings(rabbitmq, "large")], &[], &Settings::default());
    publish(&outputs, &my_app, "dev-1", "up", json!({"n": 0, "large": "x".repeat(RABBITMQ_MESSAGE_BYTES_MAX)})).await;
    publish_numbers(&outputs, &my_app, "dev-1", 1..4).await;
    for number in 1..4 {
        assert_eq!(consumer.next().await.number(), number);
    }
    assert_eq!(count(&store, &my_app, "dead/amqp/main/").await, 1);
    outputs.stop().await;
    assert_eq!(count(&store, &my_app, "queue/amqp/main/").await, 0);
}

async fn what_the_broker_cannot_take_now_waits(rabbitmq: &RabbitMq) {
    let (_connection, channel) = connect(rabbitmq).await;
    declare_exchange(&channel, "full").await;
    let mut arguments = FieldTable::new();
    arguments.insert("x-max-length".try_into().unwrap(), FieldValue::I(1));
    arguments.insert("x-overflow".try_into().unwrap(), FieldValue::S("reject-publish".try_into().unwrap()));
    bind_queue(&channel, "full", "#", arguments).await;
    let outputs = start(&store(), &[settings(rabbitmq, "full")], &[], &Settings::default());
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..3).await;
    for number in 0..3 {
        let mut taken = None;
        while taken.is_none() {
            taken = take_one(&channel, "full").await;
        }
        assert_eq!(taken.unwrap()["n"], number);
    }
    outputs.stop().await;
}

async fn a_deleted_exchange_is_declared_again(rabbitmq: &RabbitMq) {
    let mut consumer = Consumer::bind(rabbitmq, "deleted", "#").await;
    let mandatory = AmqpSettings { mandatory: true, ..settings(rabbitmq, "deleted") };
    let outputs = start(&store(), &[mandatory], &[], &Settings::default());
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [0]).await;
    assert_eq!(consumer.next().await.number(), 0);
    let (_connection, channel) = connect(rabbitmq).await;
    let (log, _logging) = Log::start(Level::INFO);
    delete_exchange(&channel, "deleted").await;
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [1]).await;
    log.until("connected").await;
    // There is no queue for it until now.
    bind_queue(&channel, "deleted", "#", FieldTable::new()).await;
    assert_eq!(consumer.next().await.number(), 1);
    outputs.stop().await;
}

async fn wrong_settings_are_named(rabbitmq: &RabbitMq) {
    let (_connection, channel) = connect(rabbitmq).await;
    let mut other = amqprs::channel::ExchangeDeclareArguments::new("other", "direct");
    channel.exchange_declare(other.durable(true).finish()).await.unwrap();
    let right = settings(rabbitmq, "wrong");
    for (wrong, advice) in [
        (AmqpSettings { username: "nobody".to_owned(), ..right.clone() }, "check `username` and `password_file`"),
        (AmqpSettings { url: format!("{}/none", right.url), ..right.clone() }, "check the virtual host"),
        (AmqpSettings { declare_exchange: false, ..right.clone() }, "or set `declare_exchange`"),
        (AmqpSettings { exchange: "other".to_owned(), ..right.clone() }, "set `declare_exchange = false`"),
        (AmqpSettings { exchange: "amq.own".to_owned(), ..right }, "let the user write to the exchange"),
    ] {
        is_reported(wrong, advice).await;
    }
}

/// Asserts that the log says what is wrong with settings.
pub async fn is_reported(wrong: AmqpSettings, advice: &str) {
    let (log, _logging) = Log::start(Level::INFO);
    let outputs = start(&store(), &[wrong], &[], &Settings::default());
    let line = log.until(advice).await;
    assert!(line.contains("ERROR") && line.contains("output.amqp main"), "{line}");
    outputs.stop().await;
}
