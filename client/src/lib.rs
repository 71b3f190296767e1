#![doc = include_str!("../README.md")]

pub mod account;
pub mod discovery;
mod error;
mod grpc;
pub mod handler;
mod http;
pub mod mqtt;
mod payload;
mod random;
mod retry;
mod trust;

pub use api;
pub use types;

pub use error::{Error, Result};
pub use payload::{BadPayload, Payload};
pub use random::{KEY_BYTES, random_bytes, random_eui, random_key};
pub use trust::Trust;
