//! The order of queues while clocks are wrong: set back at a restart, or different in each handler.

use std::{collections::HashSet, sync::Arc, time::Duration};

use outputs::{OperatorSettings, Outputs, RedisSettings, Settings};
use serde_json::Value;
use server::system::SystemClock;
use store::{Key, Store, Tag};
use testing::ManualClock;
use types::Clock;

use crate::harness::{app_id, publish_numbers, start_as, store};

const HOUR: Duration = Duration::from_secs(3600);

/// Number of messages accepted: more than are looked at together.
const MESSAGES: u64 = 200;

/// Limits of the queue: all messages, or few.
const ROOMS: [usize; 2] = [1000, 50];

fn start(store: &Arc<dyn Store>, is_shared: bool, clock: &Arc<ManualClock>, queue_messages_max: usize) -> Outputs {
    let nowhere = RedisSettings { url: "redis://127.0.0.1:1".to_owned(), ..RedisSettings::default() };
    let operator = OperatorSettings { amqp: &[], redis: &[nowhere], kafka: &[] };
    let settings = Settings { queue_messages_max, ..Settings::default() };
    start_as(store, is_shared, clock.clone(), operator, &settings)
}

fn now() -> Arc<ManualClock> {
    ManualClock::at(SystemClock.now())
}

/// The numbers that wait, in the order of their queue.
async fn waiting(store: &Arc<dyn Store>) -> Vec<u64> {
    let queue = Key::new(&Tag::application("my-app").unwrap(), "handler/output/queue/").unwrap();
    let entries = store.list(&queue, None, 1000).await.unwrap();
    let ids: HashSet<_> = entries.iter().map(|entry| entry.key.as_str().rsplit('/').next().unwrap()).collect();
    assert_eq!(ids.len(), entries.len(), "no id is used twice");
    let number = |value: &[u8]| serde_json::from_slice::<Value>(value).unwrap()["body"]["n"].as_u64().unwrap();
    entries.iter().map(|entry| number(&entry.value)).collect()
}

#[tokio::test]
async fn a_queue_stays_in_order_when_the_clock_was_set_back_at_a_restart() {
    for room in ROOMS {
        let (store, clock) = (store(), now());
        for numbers in [0..MESSAGES / 2, MESSAGES / 2..MESSAGES] {
            let outputs = start(&store, false, &clock, room);
            publish_numbers(&outputs, &app_id("my-app"), "dev-1", numbers).await;
            outputs.stop().await;
            clock.set_back(HOUR);
        }
        let first = MESSAGES.saturating_sub(room as u64);
        assert_eq!(waiting(&store).await, Vec::from_iter(first..MESSAGES));
    }
}

#[tokio::test]
async fn handlers_whose_clocks_differ_keep_the_order_of_a_device() {
    for room in ROOMS {
        let (store, fast, slow) = (store(), now(), now());
        slow.set_back(HOUR);
        let handlers = [fast, slow].map(|clock| start(&store, true, &clock, room));
        for number in 0..MESSAGES {
            let handler = &handlers[usize::from(number % 3 == 0)];
            publish_numbers(handler, &app_id("my-app"), "dev-1", [number]).await;
        }
        let waiting = waiting(&store).await;
        // Each counts the queue only now and then, because the other adds to it.
        assert_eq!(waiting[0] > 0, room < 1000, "the oldest are dropped of a full queue: {waiting:?}");
        assert_eq!(waiting, Vec::from_iter(waiting[0]..MESSAGES));
        for handler in handlers {
            handler.stop().await;
        }
    }
}
