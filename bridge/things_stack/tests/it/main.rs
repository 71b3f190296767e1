//! The bridge to The Things Stack: a real broker plays its MQTT server, a stand-in its API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_things_stack as things_stack;

mod downlink_events;
mod downlinks;
#[path = "../../../tests/shared/environment.rs"]
mod environment;
mod formatters;
mod harness;
mod history;
mod losses;
mod shadow;
mod uplinks;
mod webhooks;
