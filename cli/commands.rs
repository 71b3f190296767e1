//! The commands that people type at a running network, one file per noun.

pub mod applications;
pub mod devices;
pub mod subscribe;
pub mod user;
