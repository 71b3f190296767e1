#![doc = include_str!("../README.md")]

pub mod audit;
pub mod auth;
mod error;
pub mod grpc;
mod http;
pub mod ledger;
mod process;
pub mod rate_limit;
mod secrets;
pub mod serve;
pub mod telemetry;
pub mod usage;

pub use self::{
    error::{Error, status},
    http::{error_response, json, openapi, site},
    process::{lease, settings, shutdown, store_mark, system},
    secrets::{identity, private_file, seal, tls},
};
pub use link::secret_file;
