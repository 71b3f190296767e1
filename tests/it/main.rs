//! Tests of the whole product from outside, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

// The examples use the crate's public name.
extern crate client as airlock_client;

mod audit;
mod backups;
mod bridge;
mod browser;
mod candidates;
mod chart;
mod codecs;
mod commands;
mod conformance;
mod console;
mod crashes;
mod data_client;
mod decode_again;
mod demo;
mod devices;
mod downlinks;
mod dry_runs;
mod error_kinds;
mod examples;
mod external_broker;
mod fairness;
mod footprint;
mod functions;
mod handler_status;
mod harness;
mod history;
mod hostile_functions;
mod instances;
mod interrupts;
mod invalid_requests;
mod joins;
mod layers;
mod links;
mod login;
mod malformed_input;
mod metrics;
mod mqtt_access;
mod mqtt_sessions;
mod network_brokers;
mod networks;
mod openapi;
mod operator;
mod outages;
mod outputs;
mod packages;
mod playground;
mod quick_start;
mod rate_limits;
mod replay;
mod rights;
mod schemathesis;
mod secrets;
mod send_again;
mod serve;
mod server_process;
mod third_party_clients;
mod three_processes;
mod tls;
mod uplink_batches;
mod uplinks;
mod versions;
mod webhooks;
