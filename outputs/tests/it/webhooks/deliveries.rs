//! What is known of deliveries to webhooks: since when they fail.

use outputs::Settings;

use super::{receiver::Receiver, set, settings, start, stored, until};
use crate::harness::{app_id, publish_numbers, store};

#[tokio::test]
async fn giving_a_message_up_does_not_end_the_failures() {
    let (store, receiver) = (store(), Receiver::start().await);
    let outputs = start(&store, &Settings { attempts_max: 2, ..settings() });
    set(&outputs, &app_id("my-app"), "hook", &receiver.url()).await;
    receiver.fail();
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..20).await;
    let since = || {
        let failing = outputs.webhooks().failing(&app_id("my-app"), &"hook".parse().unwrap());
        failing.map(|failing| failing.since)
    };
    until("it fails", async || since().is_some()).await;
    let first = since();
    until("one is given up", async || stored(&store, "dead/").await.0 > 0).await;
    assert_eq!(since(), first);
    outputs.stop().await;
}
