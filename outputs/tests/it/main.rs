//! Outputs of the operator, with real servers on free ports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_outputs as outputs;

mod amqp;
mod clocks;
mod harness;
#[cfg(feature = "kafka")]
mod kafka;
mod redis;
mod settings;
mod webhooks;
