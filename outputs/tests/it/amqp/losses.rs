//! Kills, of the broker and of the process: what was accepted arrives, in order per device.

use amqprs::FieldTable;
use outputs::{AmqpSettings, Settings};
use serde_json::json;
use testing::{Certificates, Log, RabbitMq};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
};
use tracing::Level;

use super::{
    consumer::{Consumer, bind_queue, connect, declare_exchange},
    settings,
};
use crate::harness::{WAIT_MAX, app_id, count, in_order, publish_numbers, start, store};

/// A process of its own, as far as a kill is concerned.
fn process() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A broker that is slow beside other work has what it was sent: it does not get it a second time.
fn patient() -> Settings {
    Settings { timeout_ms: WAIT_MAX.as_secs() * 1000, ..Settings::default() }
}

/// One node for all of them, because starting one takes long.
#[tokio::test]
async fn what_was_accepted_survives_kills() {
    let certificates = Certificates::create();
    let Some(mut rabbitmq) = RabbitMq::start_amqp(&certificates) else { return };
    everything_arrives_in_order(&mut rabbitmq).await;
    what_waits_is_bounded_while_the_broker_is_away(&mut rabbitmq).await;
    a_broker_that_does_not_answer_gets_no_more(&rabbitmq).await;
}

async fn everything_arrives_in_order(rabbitmq: &mut RabbitMq) {
    let (connection, channel) = connect(rabbitmq).await;
    declare_exchange(&channel, "kept").await;
    bind_queue(&channel, "kept", "*.devices.*.up", FieldTable::new()).await;
    drop((channel, connection));
    let (store, my_app) = (store(), app_id("my-app"));
    // A broker that has forgotten the queue says so.
    let settings = AmqpSettings { mandatory: true, ..settings(rabbitmq, "kept") };
    let process = process();
    let publishing = process.spawn({
        let (store, my_app, settings) = (store.clone(), my_app.clone(), settings.clone());
        async move {
            let outputs = start(&store, &[settings], &[], &patient());
            publish_numbers(&outputs, &my_app, "dev-1", 0..100).await;
            outputs
        }
    });
    let outputs = publishing.await.unwrap();
    // The process is killed while it delivers.
    process.shutdown_background();
    drop(outputs);

    let (log, _logging) = Log::start(Level::DEBUG);
    let outputs = start(&store, &[settings], &[], &patient());
    while count(&store, &my_app, "queue/amqp/main/").await > 0 {
        yield_now().await;
    }
    // The broker is killed before it confirms what it is sent.
    rabbitmq.freeze();
    publish_numbers(&outputs, &my_app, "dev-1", 100..200).await;
    rabbitmq.kill();
    publish_numbers(&outputs, &my_app, "dev-1", 200..300).await;
    rabbitmq.start_again();
    let (connection, channel) = connect(rabbitmq).await;
    let mut consumer = Consumer::of(connection, channel, "kept").await;
    let mut arrived = Vec::new();
    while arrived.last() != Some(&299) {
        let Some(message) = consumer.try_next().await else {
            let queued = count(&store, &my_app, "queue/amqp/main/").await;
            panic!("nothing came after {:?} while {queued} wait: {}", arrived.last(), log.text());
        };
        arrived.push(message.number());
    }
    assert_eq!(in_order(arrived), Vec::from_iter(0..300));
    outputs.stop().await;
}

async fn what_waits_is_bounded_while_the_broker_is_away(rabbitmq: &mut RabbitMq) {
    drop(Consumer::bind(rabbitmq, "bounded", "#").await);
    let settings = settings(rabbitmq, "bounded");
    let small = Settings { queue_messages_max: 5, ..patient() };
    let (log, _logging) = Log::start(Level::INFO);
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
    // Less than the time after which a connection without a sign of life is given up.
    let impatient = Settings { timeout_ms: 5_000, ..Settings::default() };
    let (log, logging) = Log::start(Level::INFO);
    let outputs = start(&store(), &[settings(rabbitmq, "frozen")], &[], &impatient);
    log.until("connected").await;
    drop(logging);
    rabbitmq.freeze();
    let (log, logging) = Log::start(Level::DEBUG);
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..3).await;
    log.until("the broker did not confirm the message in time").await;
    log.until("the broker does not confirm in time, so messages wait").await;
    // Until then, there could be more attempts; afterwards, there is no connection to make them on.
    let text = log.until("no connection, so messages wait").await;
    drop(logging);
    assert_eq!(text.matches("cannot deliver a message: trying again").count(), 1, "{text}");
    rabbitmq.thaw();
    let mut arrived = Vec::new();
    while arrived.last() != Some(&2) {
        arrived.push(consumer.next().await.number());
    }
    // The first may come twice: it was sent when the broker did not answer, and again when it had. So may others that a
    // slow broker does not confirm in time.
    assert_eq!(in_order(arrived), [0, 1, 2]);
    outputs.stop().await;
}
