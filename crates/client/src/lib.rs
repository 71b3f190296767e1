#![doc = include_str!("../README.md")]

pub mod account;
pub mod chirpstack;
pub mod data;
pub mod discovery;
mod error;
mod grpc;
pub mod handler;
pub mod history;
mod http;
pub mod network_broker;
mod random;
mod reason;
mod retry;
pub mod things_stack;
mod trust;
pub mod webhooks;

pub use api;
pub use types;

pub use error::{Error, Result};
pub use http::COMPONENT_HEADER;
pub use random::{KEY_BYTES, random_eui, random_key};
pub use trust::{ClientIdentity, Trust};
pub use types::{HexBytes, HexBytesError};
