//! Reports of networks about downlinks that they have, before and after their answer.

use std::{sync::Arc, time::Duration};

use handler::output::Event;
use store::StoreClock;
use testing::FailingStore;
use types::{DownlinkOutcome, Kind, Kinded};

use super::{Fixture, TestNetwork, sent};

#[tokio::test]
async fn a_report_about_a_downlink_without_an_answer_counts() {
    let network = TestNetwork::new(99);
    *network.refusals.lock().unwrap() = vec![Kind::Timeout];
    let mut fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.publish("app-one", "dev", r#"{"port":5,"payload_raw":"AQ==","confirmed":true}"#.to_owned()).await;
    network.wait_until_asked().await;
    fixture.outgoing.stop().await;
    fixture.published();
    let id = network.ids.lock().unwrap()[0].clone();
    fixture.report(&id, sent()).await.unwrap();
    assert!(matches!(fixture.published()[..], [Event::DownlinkSent(_)]));
    fixture.restart(&network).await;
    fixture.send("app-one", "dev", 6, "last").await;
    network.wait_for(&[6]).await;
    fixture.report(&id, DownlinkOutcome::Acknowledged).await.unwrap();
    assert!(matches!(fixture.published()[..], [Event::DownlinkAck(_)]));
    fixture.outgoing.stop().await;
}

#[tokio::test]
async fn an_answer_is_kept_until_the_store_is_back() {
    let network = TestNetwork::new(0);
    let store = Arc::new(FailingStore::new(StoreClock::new(|| 0)));
    let fixture = Fixture::on(store.clone(), &[("app-one", &network)]).await;
    fixture.publish("app-one", "dev", r#"{"port":5,"payload_raw":"AQ==","confirmed":true}"#.to_owned()).await;
    network.wait_until_asked().await;
    fixture.published();
    store.fail_after(0);
    network.permits.add_permits(9);
    network.wait_for(&[5]).await;
    // It is tried in vain at least once.
    while store.failed() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    store.recover();
    while fixture.report(1, DownlinkOutcome::Acknowledged).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(matches!(fixture.published()[..], [Event::DownlinkAck(_)]));
    fixture.outgoing.stop().await;
    assert_eq!(network.taken.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_report_that_overtakes_the_answer_waits_for_nothing() {
    let network = Arc::new(TestNetwork { answers_with_our_ids: true, ..TestNetwork::with_permits(0) });
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.send("app-one", "dev", 5, "last").await;
    network.wait_until_asked().await;
    fixture.published();
    let id = network.ids.lock().unwrap()[0].clone();
    fixture.report(&id, sent()).await.unwrap();
    assert!(matches!(fixture.published()[..], [Event::DownlinkSent(_)]));
    network.permits.add_permits(9);
    fixture.outgoing.stop().await;
    // About a copy, from before the answer.
    fixture.report(&id, sent()).await.unwrap();
    assert!(fixture.published().is_empty());
    assert_eq!(network.taken.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_report_comes_again_until_its_event_is_kept() {
    let network = TestNetwork::new(9);
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.publish("app-one", "dev", r#"{"port":5,"payload_raw":"AQ==","confirmed":true}"#.to_owned()).await;
    network.wait_for(&[5]).await;
    fixture.output.fail(true);
    let error = loop {
        match fixture.report(1, DownlinkOutcome::Acknowledged).await {
            Err(error) if error.kind() == Kind::Conflict => tokio::time::sleep(Duration::from_millis(5)).await,
            result => break result.unwrap_err(),
        }
    };
    assert_eq!(error.kind(), Kind::Unavailable);
    fixture.output.fail(false);
    fixture.published();
    fixture.report(1, DownlinkOutcome::Acknowledged).await.unwrap();
    assert!(matches!(fixture.published()[..], [Event::DownlinkAck(_)]));
    fixture.report(1, DownlinkOutcome::Acknowledged).await.unwrap();
    assert!(fixture.published().is_empty());
    fixture.outgoing.stop().await;
}

#[tokio::test]
async fn all_events_about_a_downlink_name_it() {
    let network = Arc::new(TestNetwork { answers_with_our_ids: true, ..TestNetwork::with_permits(9) });
    let fixture = Fixture::start(&[("app-one", &network)]).await;
    fixture.publish("app-one", "dev", r#"{"port":5,"payload_raw":"AQ==","confirmed":true}"#.to_owned()).await;
    network.wait_for(&[5]).await;
    let ours = network.ids.lock().unwrap()[0].clone();
    let mut events = fixture.output.take();
    // It is refused while the answer of the network is not stored yet.
    while let Err(error) = fixture.report(&ours, sent()).await {
        assert_eq!(error.kind(), Kind::Conflict, "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fixture.report(&ours, DownlinkOutcome::Acknowledged).await.unwrap();
    events.extend(fixture.output.take());
    let named = events.into_iter().map(|message| match message.event {
        Event::DownlinkScheduled(event) => ("scheduled", event.downlink_id),
        Event::DownlinkSent(event) => ("sent", event.downlink_id),
        Event::DownlinkAck(event) => ("acknowledged", event.downlink_id),
        event => panic!("{event:?}"),
    });
    assert_eq!(named.collect::<Vec<_>>(), ["scheduled", "sent", "acknowledged"].map(|name| (name, ours.clone())));
    fixture.outgoing.stop().await;
}
