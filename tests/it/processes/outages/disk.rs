//! The disk of the embedded store is full: what owners store is refused, and the service goes on.

use airlock::{serve::Stack, settings::TlsMode};
use client::handler::HandlerClient;
use futures::FutureExt;
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
async fn a_full_disk_refuses_what_owners_store_and_ends_nothing() {
    let Some(disk) = SmallDisk::of_size(DISK_BYTES) else { return };
    let network = Network::with(|settings| {
        settings.data_dir = disk.path().to_owned();
        settings.tls.mode = TlsMode::Off;
    });
    let network = network.await;
    let owner = network.owner("full").await;
    let device = |number: usize| crate::harness::device(&owner.app_id, &format!("dev-{number}"));
    disk.fill();
    let (mut stored, mut refusal) = (0, None);
    while refusal.is_none() && stored < DEVICES_MAX {
        match owner.handler.set_device(device(stored).into()).await {
            Ok(()) => stored += 1,
            Err(error) => refusal = Some(error),
        }
    }
    let refusal = refusal.expect("the disk is full");
    assert!(refusal.kind() == types::Kind::Full && refusal.to_string().contains("reserve"), "{refusal}");
    assert!(network.stack.failure().now_or_never().is_none(), "the process goes on");
    soon((200, 200), async || (health(&network.stack, "/livez").await.0, health(&network.stack, "/readyz").await.0))
        .await;
    for number in 0..stored {
        let dev_id = format!("dev-{number}").parse().unwrap();
        owner.handler.get_device(&owner.app_id, &dev_id).await.unwrap();
    }
    owner.handler.delete_device(&owner.app_id, &"dev-0".parse().unwrap()).await.unwrap();

    let settings = network.stack.settings().clone();
    network.stack.stop().await;
    // Closing the store has made some room.
    disk.fill();
    let stack = Stack::start(settings, None, environment()).await.unwrap();
    // It starts on a full disk.
    soon(200, async || health(&stack, "/readyz").await.0).await;
    disk.empty();
    let address = stack.handler_http_address().unwrap().to_string();
    let handler = HandlerClient::connect_to(&address, &client::Trust::Plaintext, owner.token.clone()).unwrap();
    soon(true, async || handler.set_device(device(DEVICES_MAX).into()).await.is_ok()).await;
    stack.stop().await;
}
