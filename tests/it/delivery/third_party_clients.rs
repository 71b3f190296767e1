//! Third-party clients, installed unmodified from their registries.

pub(crate) mod browser;
mod generated_broker;
mod generated_stubs;
mod node_sdk;
mod oauth;
mod openid_provider;
pub(crate) mod python_sdk;
