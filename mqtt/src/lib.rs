#![doc = include_str!("../README.md")]

mod authenticator;
mod broker;
mod connect;
mod connect_limits;
mod connection;
mod engine;
mod error;
mod inbound;
mod listener;
mod metrics;
mod packet;
mod permissions;
mod sessions;

pub use authenticator::{Authenticator, Refusal};
pub use broker::{Broker, BrokerSettings, Endpoint};
pub use engine::PACKET_BYTES_MAX;
pub use error::Error;
