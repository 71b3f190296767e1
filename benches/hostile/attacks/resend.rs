//! Row 13: one request to send all dead letters again, to a receiver that still refuses them.

use std::time::Duration;

use tokio::time::sleep;

use super::{hoarder, receiver::Receiver};
use crate::{
    attack::{Attack, LOOSE, attacker},
    requests::{Connection, Requests, request},
    server_process::{DEVICE, ServerProcess},
};

const LETTERS: usize = 300;

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
            let uplink = application.uplink(DEVICE);
            Requests::new(server.handler, 4, move |_| uplink.clone()).run_times(LETTERS as u64).await;
            while receiver.requests() < LETTERS {
                sleep(Duration::from_millis(50)).await;
            }
            let to = server.handler;
            attacker(async move |end| {
                let resend = request("POST", &format!("{path}/dead-letters/resend"), &authorization, "{}");
                let before = receiver.requests();
                let status = Connection::new(to).send(&resend, Duration::from_secs(60)).await;
                tokio::time::sleep_until(end.into()).await;
                format!("{} requests made; {status:?}", receiver.requests() - before)
            })
        })
    })
};
