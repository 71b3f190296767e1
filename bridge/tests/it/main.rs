//! The connection to a broker that others run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_bridge as bridge;

mod broker;
mod retained;
