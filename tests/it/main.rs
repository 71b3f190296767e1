//! The whole product, from outside: one binary with all integration tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

// By the name that programs of others know it by: the examples are such.
extern crate client as airlock_client;

mod bad_input;
mod browser;
mod call_limits;
mod commands;
mod conformance;
mod demo;
mod devices;
mod dry_runs;
mod examples;
mod functions;
mod handler_figures;
mod harness;
mod hostile;
mod instances;
mod joins;
mod layers;
mod login;
mod nonsense;
mod openapi;
mod operator;
mod outages;
#[path = "../../account/tests/it/redis.rs"]
mod redis;
mod rights;
mod schemathesis;
mod sdk;
mod secrets;
mod serve;
mod strangers;
mod tls;
mod uplinks;
mod walk;
