//! Outputs on a store in memory, as a process has them.

use std::{sync::Arc, time::Duration};

use outputs::{
    AmqpSettings, Environment, EveryGrant, OperatorOutputs, OperatorSettings, OutputMessage, Outputs, RedisSettings,
    Settings,
};
use serde_json::{Value, json};
use server::{
    ledger::{BudgetSettings, Ledger, Owners},
    seal::{KeyOwner, SealingKeys},
    system::{OsRandom, SystemClock},
};
use store::{Embedded, Key, Store, StoreClock, Tag};
use types::{AppId, Clock, Random};

/// Maximum time to wait for anything.
pub const WAIT_MAX: Duration = Duration::from_secs(180);

/// A store in memory.
pub fn store() -> Arc<dyn Store> {
    let now = || SystemClock.now().as_unix_ms();
    Arc::new(Embedded::in_memory(StoreClock::new(now)).unwrap())
}

/// Starts outputs with these settings.
pub fn start(store: &Arc<dyn Store>, amqp: &[AmqpSettings], redis: &[RedisSettings], settings: &Settings) -> Outputs {
    start_with(store, OperatorSettings { amqp, redis, kafka: &[] }, settings)
}

/// The same with outputs of every kind.
pub fn start_with(store: &Arc<dyn Store>, operator: OperatorSettings<'_>, settings: &Settings) -> Outputs {
    start_as(store, false, Arc::new(SystemClock), operator, settings)
}

/// The same with a clock of its own, and perhaps with other processes on the store.
pub fn start_as(
    store: &Arc<dyn Store>,
    is_shared: bool,
    clock: Arc<dyn Clock>,
    operator: OperatorSettings<'_>,
    settings: &Settings,
) -> Outputs {
    let environment = Environment { is_shared, ..environment(store, clock, operator, settings) };
    Outputs::start(settings, environment).unwrap()
}

/// Returns the environment of a process that is alone with its store. Every application is an owner of its own.
pub fn environment(
    store: &Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    operator: OperatorSettings<'_>,
    settings: &Settings,
) -> Environment {
    server::system::install_crypto();
    let random: Arc<dyn Random> = Arc::new(OsRandom);
    Environment {
        store: store.clone(),
        is_shared: false,
        clock: clock.clone(),
        random: random.clone(),
        keys: SealingKeys::new(KeyOwner::Handler, &[7; 32]).unwrap(),
        operator: OperatorOutputs::start(operator, settings, &random).unwrap(),
        look_up: outputs::system_look_up(),
        ledger: Ledger::new(&BudgetSettings::default()),
        owners: Arc::new(Owners::unknown(clock)),
        grants: Arc::new(EveryGrant),
        threads: tokio::runtime::Handle::current(),
    }
}

pub fn app_id(text: &str) -> AppId {
    text.parse().unwrap()
}

/// Accepts a message, and returns when it is stored.
pub async fn publish(outputs: &Outputs, app_id: &AppId, dev_id: &str, event: &str, body: Value) {
    let (event, time) = (event.to_owned(), SystemClock.now());
    let identity = body["n"].as_u64().map_or(0, |number| number + 1);
    let body = serde_json::value::to_raw_value(&body).unwrap();
    let message = OutputMessage { dev_id: Some(dev_id.parse().unwrap()), event, time, identity, body };
    outputs.publish(app_id, message).stored().await.unwrap();
}

/// Accepts uplinks with these numbers.
pub async fn publish_numbers(outputs: &Outputs, app_id: &AppId, dev_id: &str, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        publish(outputs, app_id, dev_id, "up", json!({"n": number})).await;
    }
}

/// Returns the number of records that an application has below a path of its outputs.
pub async fn count(store: &Arc<dyn Store>, app_id: &AppId, path: &str) -> usize {
    let tag = Tag::application(app_id.as_str()).unwrap();
    let key = Key::new(&tag, &format!("handler/output/{path}")).unwrap();
    store.list(&key, None, 1000).await.unwrap().len()
}

/// The numbers in the order in which they came first. None may come before a smaller one that has not come.
pub fn in_order(numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut first: Vec<u64> = Vec::new();
    for number in numbers {
        assert!(first.contains(&number) || first.last() < Some(&number), "{number} came after {first:?}");
        if !first.contains(&number) {
            first.push(number);
        }
    }
    first
}
