//! The crate as services use it: over real sockets on port 0, with a manual clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

extern crate airlock_server as server;

mod auth;
mod harness;
mod process;
mod serve;
