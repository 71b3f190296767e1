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
#[allow(dead_code, unreachable_pub, reason = "compiled into the host as well, which uses the rest")]
mod wire;
