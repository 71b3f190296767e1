//! Clients of the network servers whose devices bring messages.

pub mod chirpstack;
pub mod network_broker;
pub mod things_stack;
