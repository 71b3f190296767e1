//! The account service over HTTP, in process, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod applications;
mod authorization;
mod claims;
mod collaborators;
mod crash;
mod errors;
mod keys;
mod races;
mod redis;
mod secrets;
mod service;
mod story;
mod tokens;
