//! Outputs of the operator, with real servers on free ports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_outputs as outputs;

mod amqp;
mod harness;
mod rabbitmq;
mod redis;
mod settings;
