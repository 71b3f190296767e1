//! The bridge between a real broker and a stand-in for ChirpStack's API, on free ports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_bridge as bridge;

mod api;
mod broker;
mod codecs;
mod downlinks;
mod events;
mod harness;
mod losses;
mod retained;
mod shadow;
mod stream;
mod things_stack;
mod to_stream;
