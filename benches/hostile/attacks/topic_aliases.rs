//! Row 10: as many topic aliases as a connection may have, each of a topic as long as a packet.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{io::AsyncWriteExt, task::JoinSet, time::timeout_at};

use super::hoarder;
use crate::{
    attack::{Attack, LOOSE, attacker},
    mqtt::{self, Client},
    server_process::{Application, ServerProcess},
};

const APPLICATIONS: usize = 24;
/// As many as an application may have.
const EACH: usize = 50;
const ALIASES: u16 = 16;
const TOPIC_BYTES: usize = 65_000;
const TOGETHER: usize = 16;

pub(crate) const ATTACK: Attack = Attack {
    settings: LOOSE,
    lead: Duration::from_secs(5),
    ..Attack::new(10, "16 topic aliases of 65 kB on each of 1,200 connections", |server| {
        Box::pin(async {
            let applications = hoarder::applications(server, APPLICATIONS, &ServerProcess::demo_functions()).await;
            let to = server.mqtt;
            attacker(move |end| publish_all(to, applications, end))
        })
    })
};

async fn publish_all(to: SocketAddr, applications: Arc<[Application]>, end: Instant) -> String {
    let mut running = JoinSet::new();
    for first in 0..TOGETHER {
        let applications = Arc::clone(&applications);
        running.spawn(async move {
            let mut held = Vec::new();
            for number in (first..APPLICATIONS * EACH).step_by(TOGETHER) {
                let publish = publish(to, &applications[number % APPLICATIONS], number);
                match timeout_at(end.into(), publish).await {
                    Ok(client) => held.extend(client),
                    Err(_) => break,
                }
            }
            held
        });
    }
    let held = running.join_all().await;
    tokio::time::sleep_until(end.into()).await;
    format!("{} connections kept", held.iter().map(Vec::len).sum::<usize>())
}

/// A connection with all its aliases, if the broker still answers a ping then.
async fn publish(to: SocketAddr, application: &Application, number: usize) -> io::Result<Client> {
    let connect = mqtt::connect(5, "", &application.id, &application.key, 0);
    let mut client = Client::connect(to, 1 + number % 20, &connect).await?;
    for alias in 1..=ALIASES {
        let topic = format!("{}/{alias:06}{}", application.id, "t".repeat(TOPIC_BYTES));
        client.stream.write_all(&mqtt::publish_aliased(&topic, alias)).await?;
    }
    client.stream.write_all(&[0xc0, 0]).await?;
    while client.packet().await?.0 != 0xd0 {}
    Ok(client)
}
