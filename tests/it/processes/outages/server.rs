//! The whole server is killed or frozen: what it acknowledged is there afterwards, and it goes on.

use std::sync::{Arc, Mutex};

use client::handler::HandlerClient;
use types::{AppId, DevId, Kind, Kinded};

use super::{rounds, soon};
use crate::harness::{Owner, device, next, server_process::ServerProcess};

const WRITERS: usize = 4;
/// Number of changes that are acknowledged before the server is killed.
const ACKNOWLEDGED: usize = 30;

/// Acknowledged changes: devices that were set, and devices that were deleted afterwards.
#[derive(Default)]
struct Acknowledged {
    set: Vec<DevId>,
    deleted: Vec<DevId>,
}

/// Sets devices, and deletes every third again, until the server no longer answers.
async fn write(handler: HandlerClient, app_id: AppId, prefix: String, acknowledged: Arc<Mutex<Acknowledged>>) {
    for number in 0..1_000_000 {
        let name = format!("{prefix}-{number}");
        let dev_id: DevId = name.parse().unwrap();
        if handler.set_device(device(&app_id, &name).into()).await.is_err() {
            return;
        }
        if number % 3 > 0 {
            acknowledged.lock().unwrap().set.push(dev_id);
        } else if handler.delete_device(&app_id, &dev_id).await.is_ok() {
            acknowledged.lock().unwrap().deleted.push(dev_id);
        } else {
            return;
        }
    }
}

/// The function that is saved in a round.
fn decoder(round: usize) -> String {
    format!("function Decoder(bytes) {{ return {{ round: {round} }}; }}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_keeps_every_acknowledged_change() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let mut server = ServerProcess::start(dir.path());
    let mut owner = server.owner(dir.path(), "killed").await;
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
    for round in 0..rounds() {
        owner.set_functions([&decoder(round), "", ""]).await.unwrap();
        let count = || {
            let acknowledged = acknowledged.lock().unwrap();
            acknowledged.set.len() + acknowledged.deleted.len()
        };
        let enough = count() + ACKNOWLEDGED;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let prefix = format!("dev-{round}-{writer}");
                tokio::spawn(write(owner.handler.clone(), owner.app_id.clone(), prefix, acknowledged.clone()))
            })
            .collect();
        soon(true, async || count() >= enough).await;
        server.kill();
        for writer in writers {
            writer.abort();
            // It has either seen that the server is gone, or was aborted.
            _ = writer.await;
        }
        server = ServerProcess::start(dir.path());
        // It has other ports now.
        let handler = server.announcement(dir.path()).await;
        owner.handler = HandlerClient::connect(&handler, owner.token.clone()).unwrap();
        check(&owner, round, &acknowledged).await;
    }
}

/// Checks that everything that was acknowledged is there, and nothing that was deleted.
async fn check(owner: &Owner, round: usize, acknowledged: &Mutex<Acknowledged>) {
    let handler = &owner.handler;
    assert_eq!(handler.get_application(&owner.app_id).await.unwrap().decoder, decoder(round));
    let (set, deleted) = {
        let acknowledged = acknowledged.lock().unwrap();
        (acknowledged.set.clone(), acknowledged.deleted.clone())
    };
    for dev_id in &set {
        handler.get_device(&owner.app_id, dev_id).await.unwrap_or_else(|error| panic!("{dev_id} is lost: {error}"));
    }
    for dev_id in &deleted {
        let found = handler.get_device(&owner.app_id, dev_id).await;
        assert_eq!(found.unwrap_err().kind(), Kind::NotFound, "{dev_id} was deleted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_goes_on_where_it_was() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(dir.path());
    let owner = server.owner(dir.path(), "frozen").await;
    owner.add_device("dev-1").await;
    let mut listener = owner.listen_at(server.place("MQTT")).await;
    for round in 0..rounds() {
        owner.set_functions([&decoder(round), "", ""]).await.unwrap();
        server.freeze();
        let uplink = owner.simulate("dev-1", &[1], 1);
        let (uplink, ()) = tokio::join!(uplink, async { server.thaw() });
        uplink.unwrap();
        let (topic, message) = next(&mut listener).await;
        assert_eq!((topic.as_str(), &message["payload_fields"]["round"]), ("dev-1/up", &round.into()));
        assert_eq!(owner.handler.get_application(&owner.app_id).await.unwrap().decoder, decoder(round));
    }
    server.stop();
}
