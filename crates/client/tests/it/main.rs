//! The clients against scripted servers, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers are outside the exempt functions")]

mod account;
mod data;
mod grpc;
mod lost_calls;
mod silence;
mod trust;
