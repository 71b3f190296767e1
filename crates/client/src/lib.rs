#![doc = include_str!("../README.md")]

pub mod account;
pub mod data;
pub mod deliveries;
pub mod discovery;
mod error;
pub mod handler;
pub mod history;
mod network;
pub mod openid;
mod random;
pub mod silence;
mod transport;
pub mod webhooks;

pub use api;
pub use types;

pub use error::{Error, Result};
pub use link::{CertificateError, Trust};
pub use network::{chirpstack, network_broker, things_stack};
pub use random::{KEY_BYTES, random_eui, random_key};
pub use transport::{COMPONENT_HEADER, without_credentials};
pub use types::{HexBytes, HexBytesError};
