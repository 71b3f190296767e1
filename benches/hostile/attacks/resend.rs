//! Row 13: one request to send all dead letters again, to a receiver that still refuses them.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{hoarder, receiver::Receiver};
use crate::{
    attack::{Attack, LOOSE, attacker},
    requests::{Connection, Requests, request},
    server_process::ServerProcess,
};

const LETTERS: usize = 300;
const DEVICES: usize = 8;
/// Between the uplinks that are sent meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) const ATTACK: Attack = Attack {
    settings: LOOSE,
    ..Attack::new(13, "one resend of 300 dead letters", |server| {
        Box::pin(async {
            let receiver = Receiver::start(400, Duration::ZERO).await;
            let owner = server.register("hoarder").await;
            let application = server.add_application(&owner, "resend", ServerProcess::demo_functions()).await;
            let authorization = hoarder::authorization(&application);
            let hook = format!("{{\"url\":\"http://{}/\",\"events\":[\"up\"]}}", receiver.address);
            let path = "/applications/resend/webhooks/hook";
            let set = request("PUT", path, &authorization, &hook);
            Requests::new(server.handler, 1, move |_| set.clone()).run_times(1).await;
            let applications = [application].into();
            hoarder::add_devices(server, &applications, DEVICES).await;
            let uplinks: Vec<_> = (0..DEVICES).map(|number| applications[0].uplink(&format!("dev-{number}"))).collect();
            let next = move |number: u64| uplinks[number as usize % DEVICES].clone();
            Requests::new(server.handler, 4, next.clone()).run_times(LETTERS as u64).await;
            while receiver.requests() < LETTERS {
                sleep(Duration::from_millis(50)).await;
            }
            let to = server.handler;
            attacker(async move |end| {
                let resend = request("POST", &format!("{path}/dead-letters/resend"), &authorization, "{}");
                let before = receiver.requests();
                let mut resending = Connection::new(to);
                let resending = resending.send(&resend, Duration::from_secs(60));
                // New messages keep the deliveries going, so that they fail while others are sent again.
                let mut sending = Connection::new(to);
                let sending = async {
                    for number in 0.. {
                        sending.send(&next(number), Duration::from_secs(10)).await;
                        if Instant::now() > end {
                            return number + 1;
                        }
                        sleep(PAUSE).await;
                    }
                    0
                };
                let (_, uplinks) = tokio::join!(resending, sending);
                format!("{} requests for {LETTERS} letters and {uplinks} uplinks", receiver.requests() - before)
            })
        })
    })
};
