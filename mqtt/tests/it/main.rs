//! The broker from outside: real sockets, free ports, and no sleeps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_mqtt as mqtt;

mod access;
mod airlock_client;
mod application_metrics;
mod behind;
mod delivery;
mod durable;
mod gated_store;
mod harness;
mod limits;
mod owners;
mod packets;
mod publications;
mod raw_client;
mod sessions;
mod third_party_clients;
mod websocket;
