//! The clients against servers that answer what the test says, over real sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the functions that are exempt")]

mod account;
mod grpc;
mod trust;
