//! Row 6: sessions of clients that are away, each with filters whose group names are as long as a packet.

use std::{io, net::SocketAddr, sync::Arc, time::Instant};

use tokio::{io::AsyncWriteExt, task::JoinSet, time::timeout_at};

use super::hoarder;
use crate::{
    attack::{Attack, LOOSE, attacker},
    mqtt::{self, Client},
    server_process::{Application, ServerProcess},
};

const APPLICATIONS: usize = 2;
const SESSIONS: usize = 200;
const FILTERS: usize = 46;
const GROUP_BYTES: usize = 65_400;
const EXPIRY_S: u32 = 3600;
const TOGETHER: usize = 16;

pub(crate) const ATTACK: Attack = Attack {
    settings: LOOSE,
    ..Attack::new(6, "400 sessions with 46 shared filters of 65 kB", |server| {
        Box::pin(async {
            let applications = hoarder::applications(server, APPLICATIONS, &ServerProcess::demo_functions()).await;
            let to = server.mqtt;
            attacker(move |end| subscribe_all(to, applications, end))
        })
    })
};

async fn subscribe_all(to: SocketAddr, applications: Arc<[Application]>, end: Instant) -> String {
    let mut running = JoinSet::new();
    for first in 0..TOGETHER {
        let applications = Arc::clone(&applications);
        running.spawn(async move {
            let (mut granted, mut refused, mut closed) = (0, 0, 0);
            for number in (first..APPLICATIONS * SESSIONS).step_by(TOGETHER) {
                let session = session(to, &applications[number % APPLICATIONS], number, (&mut granted, &mut refused));
                match timeout_at(end.into(), session).await {
                    Ok(result) => closed += usize::from(result.is_err()),
                    Err(_) => break,
                }
            }
            [granted, refused, closed]
        });
    }
    let done = running.join_all().await;
    tokio::time::sleep_until(end.into()).await;
    let [granted, refused, closed] = [0, 1, 2].map(|of| done.iter().map(|counts| counts[of]).sum::<usize>());
    format!("{granted} filters granted, {refused} refused, {closed} connections refused or closed")
}

async fn session(
    to: SocketAddr,
    application: &Application,
    number: usize,
    (granted, refused): (&mut usize, &mut usize),
) -> io::Result<()> {
    let id = format!("session-{number}");
    let connect = mqtt::connect(5, &id, &application.id, &application.key, EXPIRY_S);
    let mut client = Client::connect(to, 1 + number % 10, &connect).await?;
    for filter in 0..FILTERS {
        let filter = format!("$share/{filter:06}{}/+/devices/+/up", "g".repeat(GROUP_BYTES));
        client.stream.write_all(&mqtt::subscribe(&filter)).await?;
        // Messages of this application may come in between.
        let (mut header, mut body) = client.packet().await?;
        while header != 0x90 {
            (header, body) = client.packet().await?;
        }
        *(if body.last().is_some_and(|code| *code < 0x80) { &mut *granted } else { &mut *refused }) += 1;
    }
    Ok(())
}
