//! Applications of one owner take turns.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use handler::output::Event;
use server::ledger::OwnerSource;
use testing::{ManualClock, RecordingStore};
use tokio_util::sync::CancellationToken;
use types::{AppId, UserId};

use super::{HOUR, Kind, Place, app};
use crate::records::{device, id};

/// Everything belongs to one user.
struct OneUser;

#[async_trait]
impl OwnerSource for OneUser {
    async fn owner_of(&self, _app_id: &AppId) -> Option<UserId> {
        Some("000000000000000000000001".parse().unwrap())
    }
}

#[tokio::test]
async fn a_look_that_ends_early_goes_on_with_the_next_application() {
    let clock = ManualClock::new();
    let store = Arc::new(RecordingStore::new(clock.for_store()));
    let place = Place::over(store.clone(), clock).await;
    let other = id("your-app");
    place.applications.register(&other).await.unwrap();
    place.devices.set(device("your-app")).await.unwrap();
    place.owners.ask(Arc::new(OneUser));
    for app_id in [&app(), &other] {
        place.owners.of(app_id).await;
        place.applications.set_silent_after(app_id, Some("1h".parse().unwrap())).await.unwrap();
    }
    let mut handler = place.handler(Kind::Alone).await;
    let mut reported: Vec<String> = Vec::new();
    for _ in 0..2 {
        // The device of the first application is silent each time.
        handler.hear("dev").await;
        handler.clock.advance(HOUR);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        store.interrupt_commit(async move { stopped.cancel() }.boxed());
        handler.watch.pass(&stop).await.unwrap();
        let silent = handler.output.take().into_iter().filter(|message| matches!(message.event, Event::Silent(_)));
        reported.extend(silent.map(|message| String::from(message.app_id)));
    }
    assert_eq!(reported, ["my-app", "your-app"]);
}
