//! The commands that people type, one file per noun.

pub(crate) mod account;
pub(crate) mod applications;
pub(crate) mod devices;
pub(crate) mod downlink;
pub(crate) mod functions;
pub(crate) mod gateways;
pub(crate) mod subscribe;
mod trial;
pub(crate) mod user;
