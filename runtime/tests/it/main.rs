//! Integration tests: what payload functions can do, and what they cannot.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod built;
mod builtins;
mod cache;
mod cold;
mod dialects;
mod es_modules;
mod failures;
mod harness;
mod hostile;
mod isolation;
mod json;
mod limits;
mod limits_of_output;
mod module;
mod pool;
mod positions;
mod profile;
mod results;
mod single_functions;
