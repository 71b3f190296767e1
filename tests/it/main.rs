//! Tests of the whole product from outside, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

// The examples use the crate's public name.
extern crate client as airlock_client;

mod browser;
mod commands;
mod console;
mod delivery;
mod devices;
mod harness;
mod messages;
mod networks;
mod playground;
mod processes;
mod repository;
mod requests;
mod workbench;
