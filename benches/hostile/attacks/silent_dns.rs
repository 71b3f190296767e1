//! Row 8: webhooks whose names lead to a server that never answers.
//!
//! The server has a resolver of its own in a mount namespace, which only root can make.

use std::{net::UdpSocket, time::Duration};

use super::hoarder;
use crate::{
    attack::{Attack, LOOSE, attacker},
    server_process::ServerProcess,
};

const APPLICATIONS: usize = 64;
/// Until each name is being looked up.
const LEAD: Duration = Duration::from_secs(3);
const RESOLVER: &str = "127.0.53.53:53";
const WITH_RESOLVER: &str = "file=$(mktemp) && echo nameserver 127.0.53.53 > $file && \
                             mount --bind $file /etc/resolv.conf && rm $file && exec \"$@\"";

pub(crate) const ATTACK: Attack = Attack {
    settings: LOOSE,
    lead: LEAD,
    command: &["unshare", "--mount", "sh", "-c", WITH_RESOLVER, "sh"],
    ..Attack::new(8, "512 webhooks whose names are never resolved", |server| {
        Box::pin(async {
            let resolver = UdpSocket::bind(RESOLVER).unwrap();
            let applications = hoarder::applications(server, APPLICATIONS, &ServerProcess::demo_functions()).await;
            let url = |which, hook| format!("http://hook-{which}-{hook}.example.com/");
            hoarder::add_webhooks(server, &applications, url).await;
            let requests = hoarder::uplinks(server, &applications, 4);
            attacker(async move |end| {
                let statuses = requests.run_until(end).await;
                drop(resolver);
                statuses
            })
        })
    })
};
