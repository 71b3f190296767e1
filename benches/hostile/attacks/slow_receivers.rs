//! Row 7: receivers of webhooks that answer just before they would be given up.

use std::time::Duration;

use super::{hoarder, receiver::Receiver};
use crate::{
    attack::{Attack, LOOSE, attacker},
    requests::Requests,
    server_process::ServerProcess,
};

const APPLICATIONS: usize = 64;
/// Each device has a delivery of its own under way to each webhook.
const DEVICES: usize = 8;
/// Until each webhook has as many deliveries as it may.
const LEAD: Duration = Duration::from_secs(8);
const WAIT: Duration = Duration::from_secs(9);

pub(crate) const ATTACK: Attack = Attack {
    settings: LOOSE,
    lead: LEAD,
    command: &["prlimit", "--nofile=4096:4096"],
    ..Attack::new(7, "receivers that answer after 9 s, 4,096 descriptors", |server| {
        Box::pin(async {
            let receiver = Receiver::start(200, WAIT).await;
            let applications = hoarder::applications(server, APPLICATIONS, &ServerProcess::demo_functions()).await;
            hoarder::add_devices(server, &applications, DEVICES).await;
            let address = receiver.address;
            hoarder::add_webhooks(server, &applications, move |_, _| format!("http://{address}/")).await;
            let uplinks = move |number: u64| {
                let application = &applications[number as usize / DEVICES % APPLICATIONS];
                application.uplink(&format!("dev-{}", number as usize % DEVICES))
            };
            let requests = Requests::new(server.handler, 8, uplinks);
            attacker(async move |end| {
                let statuses = requests.run_until(end).await;
                format!("{statuses}; {} deliveries", receiver.requests())
            })
        })
    })
};
