//! Discovery over real sockets: gRPC and REST, its own client, and an account service that signs what the test says.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the functions that are exempt")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` reads better without a reference before it")]

mod account;
mod announcing;
mod metadata;
mod reading;
mod rest;
mod stage;
mod wire;
