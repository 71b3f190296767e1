//! The whole product, from outside: one binary with all integration tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

// By the name that programs of others know it by: the examples are such.
extern crate client as airlock_client;

mod browser;
mod commands;
mod conformance;
mod demo;
mod devices;
mod dry_runs;
mod examples;
mod functions;
mod handler_status;
mod harness;
mod hostile_functions;
mod instances;
mod invalid_requests;
mod joins;
mod layers;
mod login;
mod malformed_input;
mod openapi;
mod operator;
mod outages;
mod quick_start;
mod rate_limits;
mod rights;
mod schemathesis;
mod secrets;
mod serve;
mod third_party_clients;
mod tls;
mod uplinks;
