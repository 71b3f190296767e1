//! The handler from outside: over real sockets, with free ports and nothing that waits for time to pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_handler as handler;

mod access;
mod data;
mod downlinks;
mod limits;
mod output;
mod peer;
mod proxy;
mod records;
mod sessions;
mod spied;
mod stage;
mod strangers;
mod vault;
