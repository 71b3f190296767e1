//! A broker that others run: Mosquitto, or RabbitMQ.

mod access;
pub(crate) mod handlers;
mod interchangeable;
mod messages;
mod rabbitmq;

use std::time::Duration;

use crate::harness::MESSAGE_TIMEOUT;

/// Waits until a process that serves `metrics` is ready: it publishes in the broker, and has subscribed there.
pub(crate) async fn until_ready(metrics: &str) {
    let url = metrics.replace("/metrics", "/readyz");
    let ready = async {
        while !reqwest::get(&url).await.is_ok_and(|response| response.status().is_success()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(MESSAGE_TIMEOUT, ready).await.expect("it is ready");
}
