//! The bridge between a real broker and a stand-in for ChirpStack's API, on free ports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_chirpstack as chirpstack;

mod api;
mod codecs;
mod downlinks;
#[path = "../../../tests/shared/environment.rs"]
mod environment;
mod events;
mod harness;
mod history;
mod losses;
mod shadow;
mod stream;
mod to_stream;
