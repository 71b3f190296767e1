//! The commands that people type, one file per noun.

pub(crate) mod account;
pub(crate) mod applications;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod downlink;
pub(crate) mod functions;
pub(crate) mod gateways;
pub(crate) mod location;
pub(crate) mod subscribe;
pub(crate) mod user;
