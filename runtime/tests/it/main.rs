//! Integration tests: what payload functions can do, and what they cannot.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod engine;
mod functions;
mod harness;
mod hostile;
mod isolation;
mod limits;
