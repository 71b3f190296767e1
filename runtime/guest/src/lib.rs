#![doc = include_str!("../README.md")]

mod adopt;
#[path = "../../src/contract/guest_limits.rs"]
#[allow(dead_code, reason = "compiled into the host as well, which writes what the guest reads")]
mod bounds;
mod builtins;
mod call;
mod clock;
mod dialect;
mod downlink;
mod exports;
mod failure;
mod globals;
mod guest;
mod js;
mod json;
mod load;
mod log;
mod memory;
mod names;
mod normalize;
mod trial;
mod ts013;
mod uplink;
#[path = "../../src/contract/wire.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled into the host as well, which uses the rest")]
mod wire;
