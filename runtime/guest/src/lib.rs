#![doc = include_str!("../README.md")]

mod builtins;
mod call;
mod clock;
mod dialect;
mod downlink;
mod exports;
mod failure;
mod globals;
mod guest;
#[path = "../../src/contract/guest_limits.rs"]
#[allow(dead_code, reason = "compiled into the host as well, which writes what the guest reads")]
mod guest_limits;
mod js;
mod json;
mod load;
mod log;
mod memory;
mod names;
mod normalize;
mod single_function;
mod steps;
mod transfer;
mod ts013;
mod uplink;
#[path = "../../src/contract/wire.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled into the host as well, which uses the rest")]
mod wire;
