//! Discovery over real sockets: gRPC and REST, its own client, and a fake account service.

#![allow(clippy::unwrap_used, reason = "test helpers are outside the exempt functions")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` reads better without a reference")]

mod account;
mod announcing;
mod harness;
mod metadata;
mod reading;
mod rest;
mod wire;
