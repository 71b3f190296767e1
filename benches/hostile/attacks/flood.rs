//! Row 20: one owner sends a hundred times the load that takes all processors, as one caller, and as many.

use super::hoarder;
use crate::{
    attack::Attack,
    requests::Requests,
    server_process::{DEVICE, ServerProcess},
};

const CONNECTIONS: usize = 1600;
const APPLICATIONS: usize = 64;

pub(crate) const OF_ONE: Attack = Attack {
    has_busy_neighbour: true,
    ..Attack::new(20, "uplinks over 1,600 connections", |server| {
        Box::pin(async {
            let application = server.create_application("flood", ServerProcess::demo_functions()).await;
            let uplink = application.uplink(DEVICE);
            Requests::new(server.handler, CONNECTIONS, move |_| uplink.clone()).attacker()
        })
    })
};

/// Each application calls with a key of its own.
pub(crate) const OF_MANY: Attack = Attack {
    has_busy_neighbour: true,
    ..Attack::new(20, "the same with the keys of 64 applications", |server| {
        Box::pin(async {
            let applications = hoarder::applications(server, APPLICATIONS, &ServerProcess::demo_functions()).await;
            let uplinks: Vec<_> = applications.iter().map(|application| application.uplink_with_key(DEVICE)).collect();
            let next = move |number: u64| uplinks[number as usize % APPLICATIONS].clone();
            Requests::new(server.handler, CONNECTIONS, next).attacker()
        })
    })
};
