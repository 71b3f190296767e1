//! The JSON bodies of the HTTP interfaces.

pub mod account;
pub mod discovery;
pub mod handler;
mod json;
