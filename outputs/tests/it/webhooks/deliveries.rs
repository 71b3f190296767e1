//! Deliveries to webhooks as owners see them: since when they fail, and what became of a message.

use outputs::{DeliveryState, OutputMessage, Outputs, Settings, Sought};
use serde_json::Value;
use server::usage::Usage;
use types::Timestamp;

use super::{publish_large, receiver::Receiver, set, settings, start, stored, until};
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

/// The state of the message with this number at the only webhook. Whoever asks pays for what is read.
async fn state(outputs: &Outputs, number: u64) -> DeliveryState {
    let is_it = |message: &OutputMessage| serde_json::from_str::<Value>(message.body.get()).unwrap()["n"] == number;
    let (dev_id, before, usage) = ("dev-1".parse().unwrap(), Timestamp::from_millis(0), Usage::default());
    let sought = Sought { dev_id: &dev_id, event: "up", before, is_it: &is_it, usage: &usage };
    let mut reports = outputs.deliveries(&app_id("my-app"), &sought).await.unwrap();
    assert!(usage.fuel() > 0);
    reports.pop().unwrap().state
}

#[tokio::test]
async fn a_search_reads_few_large_bodies_and_says_that_there_are_more() {
    let (store, receiver) = (store(), Receiver::start().await);
    let outputs = start(&store, &settings());
    set(&outputs, &app_id("my-app"), "hook", &receiver.url()).await;
    receiver.stop().await;
    publish_large(&outputs, 0..20).await;
    assert!(matches!(state(&outputs, 19).await, DeliveryState::Waiting { .. }));
    assert!(matches!(state(&outputs, 99).await, DeliveryState::Settled { is_certain: true }));
    publish_large(&outputs, 20..100).await;
    assert!(matches!(state(&outputs, 19).await, DeliveryState::Waiting { .. }));
    assert!(matches!(state(&outputs, 99).await, DeliveryState::Settled { is_certain: false }));
    outputs.stop().await;
}
