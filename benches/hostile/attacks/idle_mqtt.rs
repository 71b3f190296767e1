//! Row 3: one user with many applications keeps as many MQTT connections as each of them may have.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout_at},
};

use super::hoarder;
use crate::{
    attack::{Attack, LOOSE, attacker},
    mqtt::{self, Client},
    server_process::{Application, ServerProcess},
};

const APPLICATIONS: usize = 200;
const EACH: usize = 50;
/// They come from several addresses, each of which may connect only so often.
const ADDRESSES: usize = 20;
const TOGETHER: usize = 32;

pub(crate) const ATTACK: Attack = Attack {
    settings: LOOSE,
    lead: Duration::from_secs(12),
    ..Attack::new(3, "200 applications with 50 idle MQTT connections each", |server| {
        Box::pin(async {
            let applications = hoarder::applications(server, APPLICATIONS, &ServerProcess::demo_functions()).await;
            let packets: Arc<[Vec<u8>]> = applications.iter().map(connect_packet).collect();
            let to = server.mqtt;
            attacker(move |end| connect_all(to, packets, end))
        })
    })
};

fn connect_packet(application: &Application) -> Vec<u8> {
    mqtt::connect(5, "", &application.id, &application.key, 0)
}

async fn connect_all(to: SocketAddr, packets: Arc<[Vec<u8>]>, end: Instant) -> String {
    let mut connecting = JoinSet::new();
    for first in 0..TOGETHER {
        let packets = Arc::clone(&packets);
        connecting.spawn(async move {
            let (mut held, mut refused) = (Vec::new(), 0);
            for number in (first..APPLICATIONS * EACH).step_by(TOGETHER) {
                let connect = Client::connect(to, 1 + number % ADDRESSES, &packets[number % APPLICATIONS]);
                match timeout_at(end.into(), connect).await {
                    Ok(Ok(client)) => held.push(client),
                    Ok(Err(_)) => {
                        refused += 1;
                        sleep(Duration::from_millis(1)).await;
                    }
                    Err(_) => break,
                }
            }
            (held, refused)
        });
    }
    let done = connecting.join_all().await;
    tokio::time::sleep_until(end.into()).await;
    let held: usize = done.iter().map(|(held, _)| held.len()).sum();
    let refused: usize = done.iter().map(|(_, refused)| refused).sum();
    format!("{held} connections, {refused} refused")
}
