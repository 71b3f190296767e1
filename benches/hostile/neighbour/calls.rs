//! Calls of the neighbour besides uplinks, each over a new connection.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use tokio::time::{sleep_until, timeout};

use super::{Call, PATIENCE, Seen, Target};
use crate::{
    mqtt::{self, Client},
    requests::{Connection, request},
};

const PERIOD: Duration = Duration::from_millis(250);

/// Lists devices.
pub(super) async fn list(target: &Target, seen: &Seen) {
    let path = format!("/applications/{}/devices", target.app_id);
    let list = request("GET", &path, &target.authorization, "");
    repeat(seen, async || Connection::new(target.handler).send(&list, PATIENCE).await == Some(200)).await;
}

/// Connects over MQTT.
pub(super) async fn connect(target: &Target, seen: &Seen) {
    let packet = mqtt::connect(5, "", &target.app_id, &target.key, 0);
    let connect = async || {
        let connected = timeout(PATIENCE, Client::connect(target.mqtt, 0, &packet)).await;
        connected.is_ok_and(|client| client.is_ok())
    };
    repeat(seen, connect).await;
}

async fn repeat(seen: &Seen, mut call: impl AsyncFnMut() -> bool) {
    let mut due = Instant::now();
    while !seen.has_left.load(Ordering::Relaxed) {
        sleep_until(due.into()).await;
        let is_refused = !call().await;
        seen.calls.lock().unwrap().push(Call { due, took: due.elapsed(), is_refused });
        due += PERIOD;
    }
}
