//! The crate as services use it: over real sockets on port 0, with a manual clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

extern crate airlock_server as server;

mod admission;
mod audit;
mod authenticator;
mod component_token;
mod connections;
mod credentials;
mod error_response;
mod fake_account;
mod flooding;
mod harness;
mod health;
mod identity;
mod local_account;
mod logs;
mod outages;
mod request_bodies;
mod requests;
mod self_signed;
mod settings;
mod shutdown;
mod signer;
mod store_mark;
mod stored_bytes;
mod tls;
mod verifier;
