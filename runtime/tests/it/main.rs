//! What payload functions may do, and what none of them can.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod built;
mod builtins;
mod cache;
mod cold;
mod dialects;
mod failures;
mod hostile;
mod isolation;
mod json;
mod limits;
mod limits_of_output;
mod module;
mod pool;
mod results;
mod rig;
mod trials;
