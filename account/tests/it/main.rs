//! The account service over HTTP, in process, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod entities;
mod oauth;
mod processes;
mod requests;
mod service;
mod site;
mod users;
