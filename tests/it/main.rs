//! The whole product, from outside: one binary with all integration tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod bad_input;
mod browser;
mod call_limits;
mod conformance;
mod demo;
mod dry_runs;
mod functions;
mod handler_figures;
mod harness;
mod hostile;
mod layers;
mod operator;
mod sdk;
mod serve;
mod strangers;
mod uplinks;
mod walk;
