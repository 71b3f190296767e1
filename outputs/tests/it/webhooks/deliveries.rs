//! Deliveries to webhooks as owners see them: since when they fail, and what became of a message.

use outputs::{DeliveryState, MessageQuery, OutputMessage, Outputs, Settings};
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

/// The state of the message with this number at the only webhook.
async fn state(outputs: &Outputs, number: u64) -> DeliveryState {
    state_for(outputs, number, &Usage::default()).await
}

/// The same for somebody who pays for what is read.
async fn state_for(outputs: &Outputs, number: u64, usage: &Usage) -> DeliveryState {
    let is_it = |message: &OutputMessage| serde_json::from_str::<Value>(message.body.get()).unwrap()["n"] == number;
    let (dev_id, before) = ("dev-1".parse().unwrap(), Timestamp::from_millis(0));
    let (identity, accepted_until) = (number + 1, None);
    let sought = MessageQuery { dev_id: &dev_id, event: "up", before, identity, accepted_until, is_it: &is_it, usage };
    let mut reports = outputs.deliveries(&app_id("my-app"), &sought).await.unwrap();
    reports.pop().unwrap().state
}

#[tokio::test]
async fn a_search_reads_few_large_bodies_and_says_that_there_are_more() {
    let (store, receiver) = (store(), Receiver::start().await);
    let outputs = start(&store, &settings());
    set(&outputs, &app_id("my-app"), "hook", &receiver.url()).await;
    receiver.stop().await;
    publish_large(&outputs, 0..20).await;
    let usage = Usage::default();
    assert!(matches!(state_for(&outputs, 19, &usage).await, DeliveryState::Waiting { .. }));
    assert!(usage.fuel() > 0);
    assert!(matches!(state(&outputs, 99).await, DeliveryState::Settled { is_certain: true }));
    publish_large(&outputs, 20..100).await;
    assert!(matches!(state(&outputs, 19).await, DeliveryState::Waiting { .. }));
    assert!(matches!(state(&outputs, 99).await, DeliveryState::Settled { is_certain: false }));
    outputs.stop().await;
}

#[tokio::test]
async fn a_delivered_message_is_known_with_its_status_and_its_attempts() {
    let (store, receiver) = (store(), Receiver::start().await);
    let outputs = start(&store, &settings());
    set(&outputs, &app_id("my-app"), "hook", &receiver.url()).await;
    receiver.fail();
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..2).await;
    until("it pauses after an attempt", async || {
        matches!(state(&outputs, 0).await, DeliveryState::Waiting { attempts: 1.., next: Some(_), .. })
    })
    .await;
    receiver.take();
    until("both are delivered", async || matches!(state(&outputs, 1).await, DeliveryState::Delivered(_))).await;
    let DeliveryState::Delivered(first) = state(&outputs, 0).await else { panic!("the first one is not delivered") };
    assert!(first.is_delivered && first.status == Some(200) && first.attempts > 1, "{first:?}");
    let recent = outputs.webhooks().recent(&app_id("my-app"), &"hook".parse().unwrap()).await.unwrap();
    assert_eq!((recent.len(), recent.last()), (2, Some(&first)));
    assert_eq!((recent[0].event, recent[0].attempts), ("up", 1));
    assert_eq!(recent[0].dev_id, Some("dev-1".parse().unwrap()));
    outputs.stop().await;
}

#[tokio::test]
async fn a_message_that_was_given_up_is_known_without_its_dead_letter() {
    let (store, receiver) = (store(), Receiver::start().await);
    let (outputs, app_id, hook) = (start(&store, &settings()), app_id("my-app"), "hook".parse().unwrap());
    set(&outputs, &app_id, "hook", &receiver.url()).await;
    receiver.refuse();
    publish_numbers(&outputs, &app_id, "dev-1", 0..1).await;
    until("it is given up", async || matches!(state(&outputs, 0).await, DeliveryState::GivenUp { .. })).await;
    outputs.webhooks().delete_dead_letters(&app_id, &hook).await.unwrap();
    let DeliveryState::GivenUp { id, attempts, reason, .. } = state(&outputs, 0).await else { panic!("it is lost") };
    assert_eq!((id.as_str(), attempts, reason.as_str()), ("", 1, ""));
    let recent = outputs.webhooks().recent(&app_id, &hook).await.unwrap();
    assert_eq!(recent.iter().map(|left| (left.is_delivered, left.status)).collect::<Vec<_>>(), [(false, Some(400))]);
    // One that has the same name later begins anew.
    outputs.webhooks().delete(&app_id, &hook).await.unwrap();
    set(&outputs, &app_id, "hook", &receiver.url()).await;
    assert!(outputs.webhooks().recent(&app_id, &hook).await.unwrap().is_empty());
    outputs.stop().await;
}
