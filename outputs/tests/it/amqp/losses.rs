//! Kills, of the broker and of the process: what was accepted arrives, in order per device.

use std::time::Duration;

use amqprs::FieldTable;
use outputs::Settings;
use serde_json::json;
use testing::Certificates;
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

use super::{
    consumer::{Consumer, bind_queue, connect, declare_exchange},
    settings,
};
use crate::{
    harness::{Log, app_id, in_order, publish_numbers, start, store},
    rabbitmq::RabbitMq,
};

/// A process of its own, as far as a kill is concerned.
fn process() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// One node for both, because starting one takes long.
#[tokio::test]
async fn what_was_accepted_survives_kills() {
    let certificates = Certificates::create();
    let Some(mut rabbitmq) = RabbitMq::start(&certificates) else { return };
    everything_arrives_in_order(&mut rabbitmq).await;
    what_waits_is_bounded_while_the_broker_is_away(&mut rabbitmq).await;
    a_broker_that_does_not_answer_gets_no_more(&rabbitmq).await;
}

async fn everything_arrives_in_order(rabbitmq: &mut RabbitMq) {
    let (connection, channel) = connect(rabbitmq).await;
    declare_exchange(&channel, "kept").await;
    bind_queue(&channel, "kept", "*.devices.*.up", FieldTable::new()).await;
    drop((channel, connection));
    let (store, my_app, settings) = (store(), app_id("my-app"), settings(rabbitmq, "kept"));
    let mut last = 0;
    for kill_broker in [false, true] {
        let (process, store, my_app, settings) = (process(), store.clone(), my_app.clone(), settings.clone());
        let publishing = process.spawn(async move {
            let outputs = start(&store, &[settings], &[], &Settings::default());
            publish_numbers(&outputs, &my_app, "dev-1", last..last + 100).await;
            outputs
        });
        // The numbers are stored, but not all of them are delivered.
        let outputs = publishing.await.unwrap();
        if kill_broker {
            rabbitmq.kill();
        }
        process.shutdown_background();
        drop(outputs);
        last += 100;
    }
    let outputs = start(&store, &[settings], &[], &Settings::default());
    publish_numbers(&outputs, &my_app, "dev-2", 0..1).await;
    rabbitmq.start_again();
    let (connection, channel) = connect(rabbitmq).await;
    let mut consumer = Consumer::of(connection, channel, "kept").await;
    let mut arrived = Vec::new();
    let mut has_other = false;
    while arrived.last() != Some(&(last - 1)) || !has_other {
        let received = consumer.next().await;
        match received.key.as_str() {
            "my-app.devices.dev-1.up" => arrived.push(received.number()),
            _ => has_other = true,
        }
    }
    let arrived = in_order(arrived);
    assert_eq!(arrived, Vec::from_iter(0..last));
    outputs.stop().await;
}

async fn what_waits_is_bounded_while_the_broker_is_away(rabbitmq: &mut RabbitMq) {
    drop(Consumer::bind(rabbitmq, "bounded", "#").await);
    let settings = settings(rabbitmq, "bounded");
    let small = Settings { queue_messages_max: 5, ..Settings::default() };
    let (log, _logging) = Log::started();
    let outputs = start(&store(), &[settings], &[], &small);
    log.until("connected").await;
    rabbitmq.kill();
    log.until("no connection, so messages wait").await;
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..8).await;
    rabbitmq.start_again();
    let (connection, channel) = connect(rabbitmq).await;
    let mut consumer = Consumer::of(connection, channel, "bounded").await;
    let dropped = consumer.next().await;
    assert_eq!((dropped.key.as_str(), dropped.body), ("my-app.events.dropped", json!({"messages": 3})));
    for number in 3..8 {
        assert_eq!(consumer.next().await.number(), number);
    }
    outputs.stop().await;
}

async fn a_broker_that_does_not_answer_gets_no_more(rabbitmq: &RabbitMq) {
    let mut consumer = Consumer::bind(rabbitmq, "frozen", "#").await;
    let impatient = Settings { timeout_ms: 300, ..Settings::default() };
    let outputs = start(&store(), &[settings(rabbitmq, "frozen")], &[], &impatient);
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [0]).await;
    assert_eq!(consumer.next().await.number(), 0);
    rabbitmq.freeze();
    let (log, logging) = Log::details();
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 1..4).await;
    log.until("the broker did not confirm the message in time").await;
    drop(logging);
    // Long enough for some more attempts, which there must not be.
    sleep(Duration::from_secs(3)).await;
    rabbitmq.thaw();
    let mut arrived = Vec::new();
    while arrived.last() != Some(&3) {
        arrived.push(consumer.next().await.number());
    }
    // The first was sent twice: once when the broker did not answer, and once when it had.
    assert_eq!(arrived, [1, 1, 2, 3]);
    outputs.stop().await;
}
