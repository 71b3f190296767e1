//! The handler from outside: over real sockets, with free ports and nothing that waits for time to pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_handler as handler;

mod downlinks;
mod mqtt_client;
mod output;
mod proxy;
mod recording_output;
mod records;
mod spied;
mod stage;
mod vault;
