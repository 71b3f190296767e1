//! Webhooks whose receivers are away, slow or hostile: what they may use, and what they get in the end.

mod deliveries;
mod receiver;

use std::{
    collections::HashSet,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use outputs::{Environment, OperatorSettings, Outputs, Settings, Webhook};
use serde_json::{Value, json};
use server::{
    ledger::{BudgetSettings, Ledger, OwnerSource, Owners},
    system::SystemClock,
};
use store::{Batch, Embedded, Key, Store, StoreClock, Tag};
use testing::{FailingStore, ManualClock};
use types::{AppId, Clock, UserId};

use self::receiver::Receiver;
use crate::harness::{WAIT_MAX, app_id, environment, publish, publish_numbers, store};

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

fn settings() -> Settings {
    Settings { allow_private_addresses: true, ..Settings::default() }
}

fn prepare(store: &Arc<dyn Store>, clock: Arc<dyn Clock>, settings: &Settings) -> Environment {
    environment(store, clock, OperatorSettings::default(), settings)
}

fn start(store: &Arc<dyn Store>, settings: &Settings) -> Outputs {
    Outputs::start(settings, prepare(store, Arc::new(SystemClock), settings)).unwrap()
}

async fn set(outputs: &Outputs, app_id: &AppId, id: &str, url: &str) {
    let webhook = Webhook { url: url.to_owned(), ..Webhook::default() };
    outputs.webhooks().set(app_id, &id.parse().unwrap(), webhook).await.unwrap();
}

/// Waits until something is so.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_MAX, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Returns the numbers of records and of bytes that an application has in the store below a path of its outputs.
async fn stored(store: &Arc<dyn Store>, path: &str) -> (usize, usize) {
    let prefix = Key::new(&Tag::application("my-app").unwrap(), &format!("handler/output/{path}")).unwrap();
    let (mut after, mut records, mut bytes) = (None, 0, 0);
    loop {
        let entries = store.list(&prefix, after.as_ref(), 1000).await.unwrap();
        let Some(last) = entries.last() else { return (records, bytes) };
        after = Some(last.key.clone());
        records += entries.len();
        bytes += entries.iter().map(|entry| entry.value.len()).sum::<usize>();
    }
}

const BODY_BYTES: usize = 16 << 10;

async fn publish_large(outputs: &Outputs, numbers: std::ops::Range<u64>) {
    for n in numbers {
        publish(outputs, &app_id("my-app"), "dev-1", "up", json!({"n": n, "text": "x".repeat(BODY_BYTES)})).await;
    }
}

#[tokio::test]
async fn webhooks_share_bodies_and_are_bounded_in_bytes() {
    let (store, receiver) = (store(), Receiver::start().await);
    let settings = Settings { queue_bytes_max: 1 << 20, ..settings() };
    let outputs = start(&store, &settings);
    let url = receiver.url();
    receiver.stop().await;
    for number in 0..8 {
        set(&outputs, &app_id("my-app"), &format!("hook-{number}"), &url).await;
    }
    publish_large(&outputs, 0..100).await;
    let (bodies, _) = stored(&store, "body/").await;
    let (waiting, _) = stored(&store, "queue/").await;
    assert_eq!(waiting, 8 * bodies);
    let (_, bytes) = stored(&store, "").await;
    assert!(bytes < (1 << 20) + (1 << 18), "{bytes} bytes");
    receiver.start_again().await;
    until("everything that is left arrives", async || stored(&store, "queue/").await.0 == 0).await;
    assert_eq!(stored(&store, "body/").await.0, 0, "with the last message that needs it");
    let received = receiver.received();
    let numbers = received.iter().filter_map(|body| body["n"].as_u64()).collect::<HashSet<_>>();
    assert_eq!(numbers, (100 - bodies as u64..100).collect());
    // Each was told, however often.
    until("they are told", async || stored(&store, "dropped/").await.0 == 0 || !told(&receiver).is_empty()).await;
    outputs.stop().await;
}

fn told(receiver: &Receiver) -> Vec<Value> {
    receiver.received().into_iter().filter(|body| body.get("messages").is_some()).collect()
}

#[tokio::test]
async fn a_body_is_kept_until_the_last_of_its_destinations_has_it() {
    let (store, away, there) = (store(), Receiver::start().await, Receiver::start().await);
    let outputs = start(&store, &settings());
    set(&outputs, &app_id("my-app"), "away", &away.url()).await;
    set(&outputs, &app_id("my-app"), "there", &there.url()).await;
    away.stop().await;
    publish_large(&outputs, 0..5).await;
    until("one has all", async || stored(&store, "queue/webhook/there/").await.0 == 0).await;
    assert_eq!((there.received().len(), stored(&store, "body/").await.0), (5, 5));
    // Refused messages are dead letters, which share the bodies.
    away.refuse();
    away.start_again().await;
    until("the other refuses all", async || stored(&store, "dead/webhook/away/").await.0 == 5).await;
    assert_eq!(stored(&store, "body/").await.0, 5);
    let dead_letters =
        async |id: &str| outputs.webhooks().dead_letters(&app_id("my-app"), &id.parse().unwrap(), 0, 10).await.unwrap();
    let found = dead_letters("away").await;
    assert!(found.letters.iter().all(|letter| letter.message.body.get().len() > BODY_BYTES));
    assert!(!found.has_delivered && dead_letters("there").await.has_delivered);
    outputs.webhooks().delete(&app_id("my-app"), &"away".parse().unwrap()).await.unwrap();
    assert_eq!(stored(&store, "body/").await.0, 0);
    outputs.stop().await;
}

#[tokio::test]
async fn what_an_older_version_has_stored_is_delivered() {
    let (store, receiver) = (store(), Receiver::start().await);
    let outputs = start(&store, &settings());
    set(&outputs, &app_id("my-app"), "hook", &receiver.url()).await;
    outputs.stop().await;
    let tag = Tag::application("my-app").unwrap();
    let message = json!({"dev_id": "dev-1", "event": "up", "time": "2026-11-26T10:00:00Z", "body": {"n": 7}});
    let key = Key::new(&tag, "handler/output/queue/webhook/hook/0000000000000001-0000000000000001").unwrap();
    let until_ms = SystemClock.now().plus(WEEK).as_unix_ms();
    _ = store.commit(Batch::new().put_until(key, message.to_string(), until_ms)).await.unwrap();
    let index = Key::new(&Tag::service("handler").unwrap(), "handler/outputs/my-app").unwrap();
    _ = store.commit(Batch::new().put_until(index, "", until_ms)).await.unwrap();
    let outputs = start(&store, &settings());
    until("it arrives", async || receiver.received() == [json!({"n": 7})]).await;
    outputs.stop().await;
}

#[tokio::test]
async fn a_full_store_drops_the_oldest_and_the_receiver_is_told() {
    let full = Arc::new(FailingStore::new(StoreClock::new(|| SystemClock.now().as_unix_ms())));
    let (store, receiver): (Arc<dyn Store>, _) = (full.clone(), Receiver::start().await);
    let outputs = start(&store, &settings());
    set(&outputs, &app_id("my-app"), "hook", &receiver.url()).await;
    receiver.stop().await;
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..3).await;
    full.set_full(true);
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 3..5).await;
    full.set_full(false);
    receiver.start_again().await;
    until("the rest arrives", async || stored(&store, "queue/").await.0 == 0).await;
    // It is told before the next message.
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", [5]).await;
    until("it is told", async || !told(&receiver).is_empty()).await;
    until("the next arrives", async || stored(&store, "queue/").await.0 == 0).await;
    let dropped = told(&receiver).iter().map(|told| told["messages"].as_u64().unwrap()).sum::<u64>();
    let numbers = receiver.received().iter().filter_map(|body| body["n"].as_u64()).collect::<HashSet<_>>();
    assert_eq!(dropped + numbers.len() as u64, 6, "none is missing without a word");
    outputs.stop().await;
}

#[tokio::test]
async fn a_clock_that_is_ahead_at_a_start_destroys_nothing() {
    let clock = ManualClock::new();
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
    let receiver = Receiver::start().await;
    let outputs = Outputs::start(&settings(), prepare(&store, clock.clone(), &settings())).unwrap();
    set(&outputs, &app_id("my-app"), "hook", &receiver.url()).await;
    receiver.stop().await;
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..5).await;
    outputs.stop().await;
    clock.advance(WEEK + Duration::from_secs(86_400));
    receiver.start_again().await;
    let outputs = Outputs::start(&settings(), prepare(&store, clock.clone(), &settings())).unwrap();
    until("everything arrives", async || receiver.received().len() >= 5).await;
    outputs.stop().await;
}

#[tokio::test]
async fn resending_sends_what_was_there_when_it_began() {
    const LETTERS: usize = 20;
    let (store, receiver) = (store(), Receiver::start().await);
    let outputs = Arc::new(start(&store, &settings()));
    set(&outputs, &app_id("my-app"), "hook", &receiver.url()).await;
    receiver.refuse();
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..LETTERS as u64).await;
    until("all are refused", async || stored(&store, "dead/").await.0 == LETTERS).await;
    // Others keep its worker running, which refuses those that are sent again while there are more.
    let live = tokio::spawn({
        let outputs = outputs.clone();
        async move { publish_numbers(&outputs, &app_id("my-app"), "dev-2", 1000..).await }
    });
    let resending = async { outputs.webhooks().resend(&app_id("my-app"), &"hook".parse().unwrap(), None).await };
    let resent = tokio::time::timeout(WAIT_MAX, resending).await.expect("it ends").unwrap();
    live.abort();
    // Some of the live ones may have been refused before it began.
    let letters = receiver.received().iter().filter(|body| body["n"].as_u64() < Some(LETTERS as u64)).count();
    assert!(letters <= 2 * LETTERS, "{letters} requests");
    assert!(resent >= LETTERS);
    outputs.stop().await;
}

/// Applications whose names begin with `hog` belong to one user.
struct OneHog;

#[async_trait]
impl OwnerSource for OneHog {
    async fn owner_of(&self, app_id: &AppId) -> Option<UserId> {
        Some(UserId::from_bytes([u8::from(app_id.as_str().starts_with("hog")); 12]))
    }
}

fn with_budgets(store: &Arc<dyn Store>, settings: &Settings, budgets: &BudgetSettings) -> Environment {
    let owners = Arc::new(Owners::new(Arc::new(OneHog), Arc::new(SystemClock)));
    Environment { ledger: Ledger::new(budgets), owners, ..prepare(store, Arc::new(SystemClock), settings) }
}

#[tokio::test]
async fn receivers_that_do_not_answer_use_up_only_the_share_of_their_owner() {
    let (store, frozen, working) = (store(), Receiver::start().await, Receiver::start().await);
    let budgets = BudgetSettings { deliveries_max: 8, deliveries_per_owner_max: 4, ..BudgetSettings::default() };
    let outputs = Outputs::start(&settings(), with_budgets(&store, &settings(), &budgets)).unwrap();
    frozen.freeze();
    for number in 0..16 {
        let app_id = app_id(&format!("hog-{number}"));
        set(&outputs, &app_id, "hook", &frozen.url()).await;
        publish_numbers(&outputs, &app_id, "dev-1", [0]).await;
    }
    until("its share is used", async || frozen.open() == 4).await;
    set(&outputs, &app_id("my-app"), "hook", &working.url()).await;
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..20).await;
    until("another is served", async || working.received().len() == 20).await;
    assert_eq!(frozen.most_open(), 4);
    frozen.thaw();
    until("all are served in turn", async || frozen.received().len() == 16).await;
    outputs.stop().await;
}

#[tokio::test]
async fn names_that_are_never_resolved_use_up_only_the_share_of_their_owner() {
    let (store, receiver) = (store(), Receiver::start().await);
    let budgets = BudgetSettings { look_ups_max: 8, look_ups_per_owner_max: 2, ..BudgetSettings::default() };
    let (hanging, released) = (Arc::new(AtomicUsize::new(0)), Arc::new((Mutex::new(false), Condvar::new())));
    let look_up: outputs::LookUp = Arc::new({
        let (hanging, released) = (hanging.clone(), released.clone());
        move |host: &str| {
            if host.starts_with("never") {
                hanging.fetch_add(1, Ordering::SeqCst);
                let (is_released, changed) = &*released;
                drop(changed.wait_while(is_released.lock().unwrap(), |is_released| !*is_released));
            }
            Ok(vec![([127, 0, 0, 1], 0).into()])
        }
    });
    let environment = Environment { look_up, ..with_budgets(&store, &settings(), &budgets) };
    let outputs = Outputs::start(&settings(), environment).unwrap();
    for number in 0..16 {
        let app_id = app_id(&format!("hog-{number}"));
        set(&outputs, &app_id, "hook", &format!("http://never-{number}.example")).await;
        publish_numbers(&outputs, &app_id, "dev-1", [0]).await;
    }
    until("its share is used", async || hanging.load(Ordering::SeqCst) == 2).await;
    let url = receiver.url().replace("127.0.0.1", "good.example");
    set(&outputs, &app_id("my-app"), "hook", &url).await;
    publish_numbers(&outputs, &app_id("my-app"), "dev-1", 0..3).await;
    until("another is served", async || receiver.received().len() == 3).await;
    assert_eq!(hanging.load(Ordering::SeqCst), 2);
    *released.0.lock().unwrap() = true;
    released.1.notify_all();
    outputs.stop().await;
}
