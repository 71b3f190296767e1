#![doc = include_str!("../README.md")]

mod call;
mod clock;
mod dialect;
mod downlink;
mod exports;
mod failure;
mod guest;
mod js;
mod json;
mod load;
mod log;
mod memory;
mod names;
mod uplink;
#[path = "../../src/wire.rs"]
#[allow(dead_code, reason = "the host uses the rest")]
mod wire;
