//! The account service over HTTP, in process, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod access_matrix;
mod applications;
mod authorization;
mod authorize;
mod claims;
mod client_library;
mod clients;
mod codes;
mod collaborators;
mod components;
mod crash;
mod endpoints;
mod errors;
mod first_steps;
mod frequency_plans;
mod gateway_locations;
mod gateway_views;
mod gateways;
mod indexes;
mod instances;
mod keys;
mod mail;
mod openapi;
mod operator;
mod profile;
mod races;
mod rate_limits;
mod refresh;
mod rotation;
mod schemathesis;
mod secrets;
mod service;
mod sessions;
mod site;
mod tokens;
