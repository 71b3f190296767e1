//! The JSON bodies of the HTTP APIs.

pub mod account;
pub mod discovery;
pub mod handler;
mod json;
