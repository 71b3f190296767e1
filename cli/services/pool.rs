//! Starts the sandboxes of a process.

use std::{sync::Arc, time::Duration};

use metrics::{Gauge, describe_gauge, gauge};
use runtime::{Engine, Pool, Settings};
use tokio::time::{MissedTickBehavior, interval};

const WAITING: &str = "airlock_sandbox_waiting_messages";
/// Interval at which waiting messages are counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// Starts a worker pool; `owner` names it in metrics.
pub(crate) async fn start(owner: &'static str, settings: &Settings) -> anyhow::Result<Pool> {
    let settings = settings.clone();
    let engine = tokio::task::spawn_blocking(move || Engine::new(&settings)).await??;
    let pool = Pool::start(Arc::new(engine))?;
    describe_gauge!(WAITING, "Messages that wait for a sandbox, by the owner of the sandboxes");
    tokio::spawn(report_waiting(gauge!(WAITING, "pool" => owner), pool.waiting_counter()));
    Ok(pool)
}

/// Reports until the pool has gone. The sandboxes know nothing of metrics, and this costs a message nothing.
async fn report_waiting(gauge: Gauge, waiting: impl Fn() -> Option<usize>) {
    let mut ticks = interval(COUNT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(messages) = waiting() {
        gauge.set(messages as f64);
        ticks.tick().await;
    }
}
