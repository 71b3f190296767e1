//! Subscriptions whose messages are worked on device by device, and their health.

pub mod dedup;
pub mod lanes;

use std::sync::Arc;

use futures::future::BoxFuture;
use link::{
    delivery::Delivery,
    mqtt::{Endpoint, Subscriber, Subscription},
};
use server::telemetry::Health;
use tokio::sync::watch;

use self::lanes::Lanes;

/// Receives messages, and works on those of one device one after the other. `device` finds it in a topic.
pub fn receive(
    endpoint: Endpoint,
    subscription: Subscription,
    device: impl Fn(&str) -> String + Send + Sync + 'static,
    work: impl Fn(Delivery) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> Subscriber {
    let lanes = Lanes::new(Arc::new(work));
    Subscriber::start(endpoint, subscription, move |delivery| {
        lanes.add(&device(&delivery.topic), delivery);
    })
}

/// Reports a connection as a health check.
pub fn report_connection(health: &Health, name: &'static str, connected: &watch::Receiver<bool>) {
    report_connections(health, name, vec![connected.clone()]);
}

/// Reports connections as one health check.
pub fn report_connections(health: &Health, name: &'static str, connected: Vec<watch::Receiver<bool>>) {
    health.add(name, move || {
        let count = connected.iter().filter(|connected| !*connected.borrow()).count();
        let of = connected.len();
        async move {
            match count {
                0 => Ok(()),
                1 if of == 1 => Err("not connected".to_owned()),
                _ => Err(format!("{count} of {of} not connected")),
            }
        }
    });
}
