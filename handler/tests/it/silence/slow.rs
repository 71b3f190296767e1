//! Passes over a store that is slow.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use testing::{ManualClock, SlowStore};
use types::Clock as _;

use super::{HOUR, Kind, MINUTE, Place};
use crate::records::{device, id};

const APPLICATIONS: usize = 80;
/// The passes in which all of them have had turns, with some to spare.
const PASSES_MAX: usize = 200;

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn a_pass_over_a_slow_store_ends_and_the_next_ones_go_on() {
    let clock = ManualClock::new();
    let store = Arc::new(SlowStore::new(clock.clone()));
    let place = Place::over(store.clone(), clock.clone()).await;
    let mut silent = BTreeSet::new();
    for number in 0..APPLICATIONS {
        let name = format!("app-{number:04}");
        place.applications.register(&id(&name)).await.unwrap();
        place.devices.set(device(&name)).await.unwrap();
        place.applications.set_silent_after(&id(&name), Some("1h".parse().unwrap())).await.unwrap();
        silent.insert(name);
    }
    let mut handler = place.handler(Kind::Alone).await;
    clock.advance(HOUR);
    store.slow_down(Duration::from_secs(1));
    for pass in 0.. {
        assert!(pass < PASSES_MAX, "these have had no turn: {silent:?}");
        let began = clock.now();
        for event in handler.look().await {
            assert!(silent.remove(event.app_id.as_str()), "{} was reported twice", event.app_id);
        }
        let took = clock.now().since(began);
        assert!(took < 2 * MINUTE, "a pass took {took:?}");
        if silent.is_empty() {
            assert!(pass > 1, "one pass would be enough for all");
            return;
        }
    }
}
