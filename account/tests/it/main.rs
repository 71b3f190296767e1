//! The account service over HTTP, in process, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod applications;
mod authorization;
mod authorize;
mod claims;
mod clients;
mod codes;
mod collaborators;
mod components;
mod crash;
mod endpoints;
mod errors;
mod frequency_plans;
mod gateway_locations;
mod gateway_views;
mod gateways;
mod indexes;
mod instances;
mod keys;
mod mail;
mod matrix;
mod openapi;
mod operator;
mod profile;
mod programs;
mod races;
mod refresh;
mod rotation;
mod schemathesis;
mod secrets;
mod service;
mod sessions;
mod site;
mod story;
mod throttle;
mod tokens;
