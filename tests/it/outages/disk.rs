//! The disk of the embedded store is full. `serve.rs` has the same for a process, which ends.

use airlock::{serve::Stack, settings::TlsMode};
use client::handler::HandlerClient;
use serde_json::Value;
use testing::SmallDisk;
use types::Kinded;

use super::soon;
use crate::harness::{Network, environment};

/// Room for a new store, and some more.
const DISK_BYTES: usize = 8 << 20;
/// More devices than fit.
const DEVICES_MAX: usize = 100_000;

/// The status and the body of a health check.
async fn health(stack: &Stack, path: &str) -> (u16, String) {
    let overview = stack.overview();
    let metrics = overview.split_whitespace().find(|word| word.ends_with("/metrics")).unwrap();
    let answer = reqwest::get(metrics.replace("/metrics", path)).await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_shows_in_the_health_checks_and_loses_nothing() {
    let Some(disk) = SmallDisk::of_size(DISK_BYTES) else { return };
    let network = Network::with(|settings| {
        settings.data_dir = disk.path().to_owned();
        settings.tls.mode = TlsMode::Off;
    });
    let network = network.await;
    let owner = network.owner("full").await;
    assert_eq!((health(&network.stack, "/livez").await.0, health(&network.stack, "/readyz").await.0), (200, 200));

    disk.fill();
    let mut devices = Vec::new();
    for number in 0..DEVICES_MAX {
        let dev_id = format!("dev-{number}");
        match owner.handler.set_device(crate::harness::device(&owner.app_id, &dev_id).into()).await {
            Ok(()) => devices.push(dev_id),
            Err(error) => {
                assert_eq!(error.kind(), types::Kind::Unavailable, "{error}");
                break;
            }
        }
    }
    let failure = network.stack.failure().await.to_string();
    assert!(failure.contains("check the disk"), "{failure}");
    soon(503, async || health(&network.stack, "/livez").await.0).await;
    let (status, text) = health(&network.stack, "/livez").await;
    assert!(status == 503 && text.contains("check the disk"), "{text}");
    let (status, text) = health(&network.stack, "/readyz").await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(status == 503 && report["checks"]["store"] != "ok", "{text}");
    let settings = network.stack.settings().clone();
    network.stack.stop().await;

    disk.empty();
    let stack = Stack::start(settings, None, environment()).await.unwrap();
    assert_eq!((health(&stack, "/livez").await.0, health(&stack, "/readyz").await.0), (200, 200));
    let address = stack.handler_http_address().unwrap().to_string();
    let handler = HandlerClient::connect_to(&address, &client::Trust::Plaintext, owner.token.clone()).unwrap();
    for dev_id in devices {
        handler.get_device(&owner.app_id, &dev_id.parse().unwrap()).await.unwrap();
    }
    stack.stop().await;
}
