//! The clients against scripted servers, over real sockets.

#![allow(clippy::unwrap_used, reason = "test helpers are outside the exempt functions")]

mod account;
mod grpc;
mod mqtt;
mod trust;
