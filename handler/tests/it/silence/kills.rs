//! Silences that end just before a handler does.

use types::Clock as _;

use super::{HOUR, Kind, MINUTE, Place};

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn a_silence_that_ended_just_before_a_kill_is_followed_by_the_next_one() {
    let place = Place::with_time().await;
    let mut first = place.handler(Kind::Alone).await;
    place.put("other", "").await;
    assert_eq!(first.look_after(HOUR).await, ["dev", "other"]);
    first.clock.advance(MINUTE);
    first.hear("dev").await;
    let heard = first.clock.now();
    // It is killed before it looks.
    drop(first);
    place.clock.advance(MINUTE);
    let mut second = place.handler(Kind::Alone).await;
    assert!(second.look_after(HOUR - 3 * MINUTE).await.is_empty());
    second.clock.advance(MINUTE);
    let events = second.look().await;
    let events: Vec<_> = events.iter().map(|event| (event.dev_id.as_str(), event.last_seen)).collect();
    assert_eq!(events, [("dev", Some(heard))], "the silence of the other one goes on");
    assert!(second.look_after(HOUR * 100).await.is_empty());
}

// Conformance: The same over restarts, jumps of the clock and outages of outputs
#[tokio::test]
async fn a_silence_that_began_just_before_a_kill_is_reported_after_a_long_outage() {
    let place = Place::with_time().await;
    let mut first = place.handler(Kind::Alone).await;
    assert_eq!(first.look_after(HOUR).await, ["dev"]);
    first.hear("dev").await;
    drop(first);
    place.clock.advance(HOUR * 3);
    let mut second = place.start(Kind::Alone).await;
    assert!(second.look().await.is_empty(), "networks hand over what they have kept");
    assert_eq!(second.look_after(MINUTE).await, ["dev"]);
    assert!(second.look_after(HOUR * 100).await.is_empty());
}
