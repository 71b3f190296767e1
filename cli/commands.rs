//! The commands that people type at a running network, one file per noun.

pub(crate) mod applications;
pub(crate) mod devices;
pub(crate) mod subscribe;
pub(crate) mod user;
