#![doc = include_str!("../README.md")]

pub mod backoff;
pub mod connection_state;
pub mod delivery;
mod error;
pub mod metrics;
pub mod mqtt;
pub mod redis;
mod remote;
pub mod secret_file;
mod socket;
mod trust;

pub use self::{
    error::Error,
    remote::Remote,
    socket::{Socket, connect_socket},
    trust::{CertificateError, Trust},
};
