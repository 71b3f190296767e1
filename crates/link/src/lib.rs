#![doc = include_str!("../README.md")]

pub mod backoff;
pub mod connection_state;
pub mod delivery;
mod error;
pub mod metrics;
pub mod mqtt;
pub mod redis;
pub mod secret_file;
mod socket;
mod trust;

pub use self::{
    error::Error,
    socket::{Socket, connect_socket},
    trust::{CertificateError, ClientIdentity, Trust},
};
