#![doc = include_str!("../README.md")]

pub mod account;
pub mod data;
pub mod discovery;
mod error;
mod grpc;
pub mod handler;
mod http;
mod retry;
mod trust;

pub use error::{Error, Result};
pub use trust::Trust;
