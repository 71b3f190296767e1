#![doc = include_str!("../README.md")]

pub mod audit;
pub mod auth;
mod error;
pub mod error_response;
pub mod grpc;
pub mod identity;
pub mod json;
pub mod lease;
pub mod ledger;
pub mod openapi;
pub mod private_file;
pub mod rate_limit;
pub mod seal;
pub mod secret_file;
pub mod serve;
pub mod settings;
pub mod shutdown;
pub mod site;
pub mod status;
pub mod store_mark;
pub mod system;
pub mod telemetry;
pub mod tls;
pub mod usage;

pub use error::Error;
