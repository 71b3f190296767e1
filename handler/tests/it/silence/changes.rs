//! Applications and devices that change while their silence is noticed.

use std::sync::Arc;

use futures::FutureExt;
use handler::application::{Application, JoinKeyChange};
use testing::{ManualClock, RecordingStore};

use super::{HOUR, Kind, Place, app};
use crate::records::id;

#[tokio::test]
async fn a_look_while_the_time_is_set_does_not_undo_it() {
    let clock = ManualClock::new();
    let store = Arc::new(RecordingStore::new(clock.for_store()));
    let place = Place::over(store.clone(), clock).await;
    let (mut handler, mut other) = (place.handler(Kind::Alone).await, place.start(Kind::Alone).await);
    // The application is named by then, and has no time yet.
    store.interrupt_commit(async move { assert!(other.look().await.is_empty()) }.boxed());
    place.set("1h").await;
    assert!(handler.look().await.is_empty());
    assert_eq!(handler.look_after(HOUR).await, ["dev"]);
}

#[tokio::test]
async fn the_functions_of_an_application_do_not_change_its_time() {
    let place = Place::with_time().await;
    let application = Application::with_functions(app(), "cayennelpp".to_owned(), Default::default());
    place.applications.set(application, JoinKeyChange::Keep, Default::default()).await.unwrap();
    let summary = place.applications.summary(&app()).await.unwrap();
    assert_eq!(summary.silent_after, Some("1h".parse().unwrap()));
    assert!(place.applications.set_silent_after(&id("nobody"), None).await.is_err());
}
