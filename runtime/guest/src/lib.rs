#![doc = include_str!("../README.md")]

mod call;
mod environment;
mod exports;
mod failure;
mod guest;
#[path = "../../src/contract/guest_limits.rs"]
#[allow(dead_code, reason = "compiled into the host as well, which writes what the guest reads")]
mod guest_limits;
mod js;
mod json;
mod load;
mod memory;
mod start;
mod steps;
#[path = "../../src/contract/wire.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled into the host as well, which uses the rest")]
mod wire;
