//! Row 20: one caller sends a hundred times the load that takes all processors.

use crate::{
    attack::Attack,
    requests::Requests,
    server_process::{DEVICE, ServerProcess},
};

const CONNECTIONS: usize = 1600;

pub(crate) const ATTACK: Attack = Attack {
    has_busy_neighbour: true,
    ..Attack::new(20, "uplinks over 1,600 connections", |server| {
        Box::pin(async {
            let application = server.create_application("flood", ServerProcess::demo_functions()).await;
            let uplink = application.uplink(DEVICE);
            Requests::new(server.handler, CONNECTIONS, move |_| uplink.clone()).attacker()
        })
    })
};
