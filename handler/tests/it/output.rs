//! The handler's output: in order, never waiting, and back when the broker is.

use std::sync::Arc;

use handler::output::{
    Output, Topic,
    memory::MemoryOutput,
    mqtt::{MqttOutput, Settings},
};

use mqtt::Endpoint;

use crate::{
    mqtt_client::MqttClient,
    proxy::Proxy,
    stage::{SameBytes, Stage, message, publish_up, soon},
};

/// Where the handler of `stage` connects, by way of `proxy`.
fn endpoint(stage: &Stage, proxy: &Proxy) -> Endpoint {
    Endpoint { address: proxy.address.to_string(), ..stage.broker.internal() }
}

fn engine(stage: &Stage) -> Option<std::net::SocketAddr> {
    Some(stage.broker.internal().address.parse().unwrap())
}

async fn listener(stage: &Stage) -> MqttClient {
    MqttClient::connect(stage.broker.address(), "app-one", "#").await
}

#[tokio::test]
async fn messages_arrive_in_order_under_their_topics() {
    let stage = Stage::set().await;
    let mut listener = listener(&stage).await;
    let output = stage.output().await;
    for (topic, expected) in [
        (Topic::Up, "app-one/devices/dev/up"),
        (Topic::UpErrors, "app-one/devices/dev/events/up/errors"),
        (Topic::Activations, "app-one/devices/dev/events/activations"),
        (Topic::ActivationErrors, "app-one/devices/dev/events/activations/errors"),
        (Topic::DownScheduled, "app-one/devices/dev/events/down/scheduled"),
        (Topic::DownSent, "app-one/devices/dev/events/down/sent"),
        (Topic::DownAcks, "app-one/devices/dev/events/down/acks"),
        (Topic::DownErrors, "app-one/devices/dev/events/down/errors"),
        (Topic::Create, "app-one/devices/dev/events/create"),
        (Topic::Update, "app-one/devices/dev/events/update"),
        (Topic::Delete, "app-one/devices/dev/events/delete"),
    ] {
        output.publish(message("app-one", topic, "body"));
        assert_eq!(listener.next().await, (expected.to_owned(), "body".to_owned()));
    }
}

#[tokio::test]
async fn a_broker_that_comes_back_gets_what_waited_in_order() {
    let before = Stage::set().await;
    let proxy = Proxy::start(engine(&before)).await;
    let mut first = listener(&before).await;
    let output = MqttOutput::connect(&endpoint(&before, &proxy), &Settings::default(), Arc::new(SameBytes)).unwrap();
    soon("the connection", output.connected()).await;
    publish_up(&output, "app-one", "before");
    assert_eq!(first.next().await.1, "before");

    before.broker.shutdown().await;
    soon("the loss of the connection", output.disconnected()).await;
    for number in 0..100 {
        publish_up(&output, "app-one", &number.to_string());
    }

    let after = Stage::set().await;
    let mut second = listener(&after).await;
    proxy.redirect(engine(&after));
    for number in 0..100 {
        assert_eq!(second.next().await.1, number.to_string());
    }
}

#[tokio::test]
async fn a_connection_that_breaks_time_and_again_loses_neither_order_nor_what_waits() {
    let stage = Stage::set().await;
    let proxy = Proxy::start(engine(&stage)).await;
    let mut listener = listener(&stage).await;
    let output = MqttOutput::connect(&endpoint(&stage, &proxy), &Settings::default(), Arc::new(SameBytes)).unwrap();
    for round in 1..=3 {
        soon("the connection", output.connected()).await;
        // More than the connection can take before it is cut: the last of them still wait.
        proxy.redirect(engine(&stage));
        for number in 1..=1000 {
            publish_up(&output, "app-one", &(round * 1000 + number).to_string());
        }
        soon("the loss of the connection", output.disconnected()).await;
    }
    let mut last = 0;
    let mut ends = Vec::new();
    while last < 4000 {
        let number = listener.next().await.1.parse().unwrap();
        assert!(last < number, "{number} after {last}");
        ends.extend((number % 1000 == 0).then_some(number));
        last = number;
    }
    assert_eq!(ends, [2000, 3000, 4000]);
}

#[tokio::test]
async fn a_full_queue_drops_what_is_new_and_holds_up_nobody() {
    let stage = Stage::set().await;
    let proxy = Proxy::start(None).await;
    let mut listener = listener(&stage).await;
    let settings = Settings { queue_messages_max: 20, ..Settings::default() };
    let output = MqttOutput::connect(&endpoint(&stage, &proxy), &settings, Arc::new(SameBytes)).unwrap();
    for number in 0..100 {
        publish_up(&output, "app-one", &number.to_string());
    }
    proxy.redirect(engine(&stage));
    for number in 0..10 {
        assert_eq!(listener.next().await.1, number.to_string());
    }
    publish_up(&output, "app-one", "later");
    assert_eq!(listener.next().await.1, "later");
}

#[tokio::test]
async fn an_application_that_publishes_much_leaves_room_for_others() {
    let stage = Stage::set().await;
    let proxy = Proxy::start(None).await;
    let mut quiet = listener(&stage).await;
    let settings = Settings { queue_messages_max: 20, ..Settings::default() };
    let output = MqttOutput::connect(&endpoint(&stage, &proxy), &settings, Arc::new(SameBytes)).unwrap();
    for number in 0..1000 {
        publish_up(&output, "app-two", &number.to_string());
    }
    publish_up(&output, "app-one", "quiet");
    proxy.redirect(engine(&stage));
    assert_eq!(quiet.next().await.1, "quiet");
}

#[tokio::test]
async fn a_message_that_no_broker_takes_is_dropped_alone() {
    let stage = Stage::set().await;
    let mut listener = listener(&stage).await;
    let output = stage.output().await;
    publish_up(&output, "app-one", &"x".repeat(300_000));
    publish_up(&output, "app-one", "small");
    assert_eq!(listener.next().await.1, "small");
    assert!(output.is_connected());
}

#[tokio::test]
async fn what_waits_is_published_before_the_output_closes() {
    let stage = Stage::set().await;
    let mut listener = listener(&stage).await;
    let output = stage.output().await;
    for number in 0..500 {
        publish_up(&output, "app-one", &number.to_string());
    }
    output.close(crate::stage::PATIENCE).await;
    for number in 0..500 {
        assert_eq!(listener.next().await.1, number.to_string());
    }
}

#[tokio::test]
async fn fields_have_topics_of_their_own_only_when_that_is_wanted() {
    let stage = Stage::set().await;
    let mut listener = listener(&stage).await;
    let uplink = r#"{"port":1,"payload_fields":{"temperature":21.5,"gps":{"lat":1}}}"#;
    let plain = stage.output().await;
    publish_up(&plain, "app-one", uplink);
    publish_up(&plain, "app-one", "marker");
    assert_eq!((listener.next().await.1.as_str(), listener.next().await.1.as_str()), (uplink, "marker"));

    let settings = Settings { field_topics: true, ..Settings::default() };
    let output = MqttOutput::connect(&stage.broker.internal(), &settings, Arc::new(SameBytes)).unwrap();
    soon("the connection", output.connected()).await;
    publish_up(&output, "app-one", uplink);
    for (topic, body) in [
        ("app-one/devices/dev/up", uplink),
        ("app-one/devices/dev/up/temperature", "21.5"),
        ("app-one/devices/dev/up/gps", r#"{"lat":1}"#),
        ("app-one/devices/dev/up/gps/lat", "1"),
    ] {
        assert_eq!(listener.next().await, (topic.to_owned(), body.to_owned()));
    }
}

#[test]
fn an_output_in_memory_keeps_the_latest_messages() {
    let numbered = |number: u32| message("app-one", Topic::Up, &number.to_string());
    let output = MemoryOutput::new(2);
    (0..3).for_each(|number| output.publish(numbered(number)));
    assert_eq!(output.take(), [numbered(1), numbered(2)]);
    assert_eq!(output.take(), []);

    let null = MemoryOutput::new(0);
    null.publish(numbered(0));
    assert_eq!(null.take(), []);
}
