//! `[[bridge]]`: devices of a network as devices of v2, in `airlock serve` as a process.

mod downlinks;
mod entries;
pub(crate) mod harness;
mod kills;
mod outages;
mod things_stack;
mod uplinks;
mod webhooks;
