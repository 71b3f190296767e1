//! The broker from outside: real sockets, free ports, and no sleeps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_mqtt as mqtt;

mod access;
mod airlock_client;
mod application_metrics;
mod delivery;
mod durable;
mod harness;
mod limits;
mod packets;
mod sessions;
mod third_party_clients;
mod websocket;
