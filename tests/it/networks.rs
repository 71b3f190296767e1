//! Networks: `[[bridge]]` and `airlock bridge`, as processes, and the network brokers of The Things Network v2.

mod bridge;
mod bridge_history;
mod downlinks;
mod entries;
pub(crate) mod harness;
mod kills;
pub(crate) mod network_brokers;
mod outages;
mod things_stack;
mod uplinks;
mod webhooks;
